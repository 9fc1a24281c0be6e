-- Forget the wishes for jobs whose attempt has ended. Lock: the write lock. Index: primary key.
delete from {prefix}_wish where id in (select value from json_each(:ids))
