-- Jobs of one task in some lanes that were parked because nobody knew it. Lock: the write lock, taken before.
-- Index: cause, in order.
select id, queue, priority, pos, task, run, failed, lost, interrupted, snoozed, expires_at
from {prefix}_blocked
where cause = 1 and task = :task and queue in (select value from json_each(:lanes))
order by pos
limit :most
