-- End a pause. Lock: the write lock. Index: primary key.
delete from {prefix}_pause where target = :target
