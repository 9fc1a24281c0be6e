-- Take jobs out of blocked. Lock: the write lock. Index: primary key.
delete from {prefix}_blocked where id in (select value from json_each(:ids))
