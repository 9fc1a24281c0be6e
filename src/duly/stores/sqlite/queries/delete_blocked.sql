-- Take a job out of blocked. Lock: the write lock. Index: primary key.
delete from {prefix}_blocked where id = :id
