-- Jobs set aside long ago for want of a worker that knows their task. Lock: the write lock, taken before. Index: cause.
select id, queue, priority, pos, task, run, failed, lost, interrupted, snoozed, expires_at, tenant
from {prefix}_blocked
where cause = 1 and task = :task and since <= :before
order by pos
limit :most
