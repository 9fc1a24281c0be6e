-- Record a declared queue. Lock: the write lock. Index: primary key.
insert into {prefix}_queue (name, key, owner, keep, keep_dead) values (:name, :key, :owner, :keep, :keep_dead)
on conflict (name) do update
set key = excluded.key, owner = excluded.owner, keep = excluded.keep, keep_dead = excluded.keep_dead
