-- The latest word of a live attempt. Lock: the write lock. Index: primary key, claimed by primary key.
insert into {prefix}_progress (id, run, done, "of", note, at)
select c.id, c.run, :done, :of, :note, :at
from {prefix}_claimed as c
where c.incarnation = :incarnation and c.id = :id and c.run = :run
on conflict (id) do update
set run = excluded.run, done = excluded.done, "of" = excluded."of", note = excluded.note, at = excluded.at
