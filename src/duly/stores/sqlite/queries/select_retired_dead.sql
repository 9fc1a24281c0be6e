-- The oldest dead letters of a queue that were announced and need not be kept. Lock: the write lock, taken before.
-- Index: queue, in order.
select id from {prefix}_dead
where queue = :queue and died_at < :before and announced_at <= :announced_before
order by died_at
limit :most
