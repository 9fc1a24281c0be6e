-- Forget what jobs were. Lock: the write lock. Index: primary key.
delete from {prefix}_job where id in (select value from json_each(:ids))
