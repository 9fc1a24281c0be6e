-- Forget which limits tasks take. Lock: the write lock. Index: primary key, one range each.
delete from {prefix}_task_limit where task in (select value from json_each(:tasks))
