-- Take a job out of the order of its key. Lock: the write lock. Index: primary key.
delete from {prefix}_keyed where key = :key and id = :id
