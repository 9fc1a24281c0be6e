-- A sample of what the file takes. Lock: the write lock, taken before. Index: store_use by primary key.
insert or replace into {prefix}_store_use (at, used, free_disk)
values (:at, :used, :free_disk)
