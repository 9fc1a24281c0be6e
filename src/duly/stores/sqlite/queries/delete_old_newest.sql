-- Forget records of newest whose time is over. Lock: the write lock. Index: until, in order.
delete from {prefix}_newest
where key in (select old.key from {prefix}_newest as old where old.until <= :now order by old.until limit :most)
