-- The oldest finished jobs of a queue that need not be kept. Lock: the write lock, taken before. Index: queue, in order.
select id from {prefix}_finished
where queue_key = :queue_key and finished_at < :before
order by finished_at, id
limit :most
