-- Remove the final rows of jobs. Lock: the write lock. Index: primary key.
delete from {prefix}_finished where id in (select value from json_each(:ids))
