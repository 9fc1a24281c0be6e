-- Remove the attempts of jobs. Lock: the write lock. Index: primary key.
delete from {prefix}_attempt where id in (select value from json_each(:ids))
