-- Which job an idempotency key stands for, and with what arguments. Lock: the write lock, taken before. Index: primary key.
select id, args_hash from {prefix}_idempotency where key = :key and until > :now
