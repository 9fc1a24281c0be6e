-- Forget an ordering key without jobs, unless it is paused. Lock: the write lock. Index: primary key.
delete from {prefix}_key_head where key = :key and paused = 0
