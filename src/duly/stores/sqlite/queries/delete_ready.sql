-- Take a job out of ready, wherever it stands. Lock: the write lock. Index: id.
delete from {prefix}_ready where id = :id
