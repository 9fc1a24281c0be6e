-- End a pause that still holds. Lock: the write lock. Index: primary key.
delete from {prefix}_pause where target = :target returning until is null or until > :now
