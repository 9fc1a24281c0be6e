-- Mark dead letters as announced, once. Lock: the write lock. Index: queue.
update {prefix}_dead set announced_at = :now
where queue = :queue and died_at <= :before and announced_at is null
