-- Remove the large results of jobs. Lock: the write lock. Index: primary key.
delete from {prefix}_result where id in (select value from json_each(:ids))
