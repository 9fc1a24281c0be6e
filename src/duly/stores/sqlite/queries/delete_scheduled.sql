-- Take a job out of scheduled. Lock: the write lock. Index: primary key.
delete from {prefix}_scheduled where id = :id
