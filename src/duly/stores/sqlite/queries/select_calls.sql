-- What workers have seen of a resource since its window began. Lock: the write lock, taken before. Index: primary key.
select window_at, calls, failures from {prefix}_limit_state where key = :key
