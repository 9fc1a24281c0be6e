-- What jobs have reserved that do not wait for limits any more. Lock: the write lock, taken before. Index: incarnation, one range;
-- waiting tables by id.
select h.key, h.id
from {prefix}_hold as h
where h.incarnation = 0 and h.id > 0 and h.until is null
  and not exists (select 1 from {prefix}_ready as r where r.id = h.id)
  and not exists (select 1 from {prefix}_blocked as b where b.id = h.id and b.cause > 2)
