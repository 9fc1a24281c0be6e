-- Forget batches; their follow-ups and blobs go beside. Lock: the write lock. Index: primary key.
delete from {prefix}_batch where id in (select value from json_each(:ids))
