-- Record a declared queue. Lock: the write lock. Index: primary key.
insert into {prefix}_queue (name, key, owner) values (:name, :key, :owner)
on conflict (name) do update set owner = excluded.owner
