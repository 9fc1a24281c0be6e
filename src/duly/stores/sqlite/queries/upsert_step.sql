-- Keep a finished step of a live attempt; the first value stays. Lock: the write lock.
-- Index: primary key, claimed by primary key.
insert into {prefix}_step (id, name, value)
select c.id, :name, :value
from {prefix}_claimed as c
where c.incarnation = :incarnation and c.id = :id and c.run = :run
on conflict (id, name) do update set value = coalesce({prefix}_step.value, excluded.value)
