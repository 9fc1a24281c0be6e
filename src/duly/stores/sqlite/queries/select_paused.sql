-- Jobs set aside because their task was paused. Lock: the write lock, taken before. Index: cause, in order.
select id, queue, priority, pos, task, run, failed, lost, interrupted, snoozed, expires_at, tenant
from {prefix}_blocked
where cause = 2 and task = :task
order by pos
limit :most
