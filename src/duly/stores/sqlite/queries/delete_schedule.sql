-- Forget a schedule. Lock: the write lock. Index: primary key.
delete from {prefix}_schedule where name = :name
