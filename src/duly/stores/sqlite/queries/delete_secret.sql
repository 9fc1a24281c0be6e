-- Forget a former key. Lock: the write lock. Index: primary key.
delete from {prefix}_secret where kind = :kind and id = :id and retired_at is not null
