-- Forget records of once whose time is over. Lock: the write lock. Index: until, in order.
delete from {prefix}_once
where key in (select old.key from {prefix}_once as old where old.until <= :now order by old.until limit :most)
