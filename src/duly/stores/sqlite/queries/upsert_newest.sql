-- Remember the version of a completed job as the newest of its key, unless a newer one is known. Lock: the write lock.
-- Index: primary keys.
insert into {prefix}_newest (key, version, until)
select j.unique_key, j.version, :until
from {prefix}_job as j
where j.id = :id and j.unique_key is not null and j.version is not null
on conflict (key) do update
set version = case when {prefix}_newest.until > :now then max({prefix}_newest.version, excluded.version) else excluded.version end,
    until = excluded.until
