-- Forget the follow-ups of jobs. Lock: the write lock. Index: primary key, one range each.
delete from {prefix}_follow where id in (select value from json_each(:ids))
