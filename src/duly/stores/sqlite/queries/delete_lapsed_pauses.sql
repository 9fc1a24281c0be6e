-- Forget pauses that are over. Lock: the write lock. A handful of rows.
delete from {prefix}_pause where until <= :now
