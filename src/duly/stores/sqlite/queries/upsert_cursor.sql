-- Keep how many items of a live attempt are done. Lock: the write lock. Index: primary key, claimed by primary key.
insert into {prefix}_step (id, name, position)
select c.id, :name, :position
from {prefix}_claimed as c
where c.incarnation = :incarnation and c.id = :id and c.run = :run
on conflict (id, name) do update set position = excluded.position
