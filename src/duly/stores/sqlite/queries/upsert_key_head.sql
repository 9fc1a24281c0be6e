-- Give an ordering key to a job. Lock: the write lock. Index: primary key.
insert into {prefix}_key_head (key, id, queue, since) values (:key, :id, :queue, :now)
on conflict (key) do update set id = excluded.id, since = excluded.since
