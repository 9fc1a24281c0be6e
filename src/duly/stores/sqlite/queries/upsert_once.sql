-- Take a key for a while, unless it is taken. Lock: the write lock. Index: primary key.
insert into {prefix}_once (key, until) values (:key, :until)
on conflict (key) do update set until = excluded.until
where {prefix}_once.until <= :now
