-- Record a declared task. Lock: the write lock. Index: primary key.
insert into {prefix}_task (name, queue) values (:name, :queue)
on conflict (name) do update set queue = excluded.queue
