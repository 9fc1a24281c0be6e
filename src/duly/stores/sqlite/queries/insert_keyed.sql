-- Give a job its place among those of its ordering key. Lock: the write lock. Index: primary key.
insert into {prefix}_keyed (key, id) values (:key, :id) on conflict do nothing
