-- Take a turn at a kind of upkeep, if nobody did since the caller looked. Lock: the write lock. Index: primary key.
insert into {prefix}_sweep (name, last_at, position) values (:name, :now, :position)
on conflict (name) do update set last_at = excluded.last_at, position = excluded.position
where last_at is :seen
