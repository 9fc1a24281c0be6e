-- Give back one hold. Lock: the write lock. Index: primary key.
delete from {prefix}_hold where key = :key and id = :id
