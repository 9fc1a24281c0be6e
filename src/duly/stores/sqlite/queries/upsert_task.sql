-- Record a declared task. Lock: the write lock. Index: primary key.
insert into {prefix}_task (name, key, queue, priority, expires) values (:name, :key, :queue, :priority, :expires)
on conflict (name) do update
set key = excluded.key, queue = excluded.queue, priority = excluded.priority, expires = excluded.expires
