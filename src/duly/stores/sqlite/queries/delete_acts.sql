-- Forget acts of long ago. Lock: the write lock. Index: the table, acts of people only.
delete from {prefix}_act where at < :before
