-- The next jobs of an ordering key, each with whether it is live, and whether dead. Lock: the write lock, taken before.
-- Index: keyed by primary key, in order; state tables by id.
select k.id,
       exists (select 1 from {prefix}_claimed as c where c.id = k.id)
       or exists (select 1 from {prefix}_ready as r where r.id = k.id)
       or exists (select 1 from {prefix}_blocked as b where b.id = k.id)
       or exists (select 1 from {prefix}_scheduled as s where s.id = k.id),
       exists (select 1 from {prefix}_dead as d where d.id = k.id)
from {prefix}_keyed as k
where k.key = :key and k.id > :after
order by k.id
limit :most
