-- Forget which blobs jobs used. Lock: the write lock. Index: primary key, one range each.
delete from {prefix}_blob where id in (select value from json_each(:ids))
