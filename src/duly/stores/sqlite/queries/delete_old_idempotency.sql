-- Forget records of idempotency whose time is over. Lock: the write lock. Index: until, in order.
delete from {prefix}_idempotency
where key in (select old.key from {prefix}_idempotency as old where old.until <= :now order by old.until limit :most)
