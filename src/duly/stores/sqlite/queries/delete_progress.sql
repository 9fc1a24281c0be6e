-- Forget the progress of attempts that have ended. Lock: the write lock. Index: primary key.
delete from {prefix}_progress where id in (select value from json_each(:ids))
