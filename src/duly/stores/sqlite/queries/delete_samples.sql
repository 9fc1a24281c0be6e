-- Forget old samples. Lock: the write lock. Index: the table, two hours at most.
delete from {prefix}_sample where at < :before
