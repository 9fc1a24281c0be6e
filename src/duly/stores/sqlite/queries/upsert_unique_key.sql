-- Take a unique key that was found free. Lock: the write lock. Index: primary key, id.
insert into {prefix}_unique_key (key, id, live) values (:key, :id, :live)
on conflict (key) do update set id = excluded.id, live = excluded.live
