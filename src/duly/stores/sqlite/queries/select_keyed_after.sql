-- Places in the order of keys after one, each with whether its job is live or dead. Lock: none.
-- Index: primary key, in order; state tables by id.
select k.key, k.id,
       exists (select 1 from {prefix}_claimed as c where c.id = k.id)
       or exists (select 1 from {prefix}_ready as r where r.id = k.id)
       or exists (select 1 from {prefix}_blocked as b where b.id = k.id)
       or exists (select 1 from {prefix}_scheduled as s where s.id = k.id)
       or exists (select 1 from {prefix}_dead as d where d.id = k.id)
from {prefix}_keyed as k
where (k.key, k.id) > (:key, :id)
order by k.key, k.id
limit :most
