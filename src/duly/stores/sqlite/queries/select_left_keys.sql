-- Unique keys after a place in the order of ids, each with whether its job still holds it. Lock: none. Index: id, in order.
-- Differs: PostgreSQL deletes those that are left in one statement.
select k.id,
       exists (select 1 from {prefix}_ready as r where r.id = k.id)
       or exists (select 1 from {prefix}_scheduled as s where s.id = k.id)
       or exists (select 1 from {prefix}_blocked as b where b.id = k.id)
       or (k.live = 1 and exists (select 1 from {prefix}_claimed as c where c.id = k.id))
from {prefix}_unique_key as k
where k.id > :after
order by k.id
limit :most
