-- The head of one lane. Lock: the write lock, taken before. Index: primary key, in order.
select priority, pos, id, task, run, failed, lost, interrupted, snoozed, expires_at
from {prefix}_ready
where queue = :queue and tenant = 0
order by priority, pos
limit :most
