-- Remove the dead letters. Lock: the write lock. Index: primary key.
delete from {prefix}_dead where id in (select value from json_each(:ids))
