-- Keep a sample. Lock: the write lock. Index: primary key.
insert into {prefix}_sample (queue, at, ready, finished) values (:queue, :at, :ready, :finished)
on conflict (queue, at) do nothing
