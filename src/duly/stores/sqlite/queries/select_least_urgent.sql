-- The tail of a queue: its least urgent ready jobs, the latest of them first. Lock: the write lock, taken before.
-- Index: ready by primary key, the whole lane, sorted. Differs: shed in PostgreSQL does all.
select id, queue, priority, pos, task, run, failed, lost, interrupted, snoozed, expires_at, tenant
from {prefix}_ready
where queue = :queue
order by priority desc, pos desc
limit :most
