-- Who owns an ordering key, whether it is live, and whether dead. Lock: the write lock, taken before.
-- Index: primary key; state tables by id.
select h.id, h.paused,
       exists (select 1 from {prefix}_claimed as c where c.id = h.id)
       or exists (select 1 from {prefix}_ready as r where r.id = h.id)
       or exists (select 1 from {prefix}_blocked as b where b.id = h.id)
       or exists (select 1 from {prefix}_scheduled as s where s.id = h.id),
       exists (select 1 from {prefix}_dead as d where d.id = h.id),
       coalesce((select q.ordering from {prefix}_queue as q where q.key = h.queue), 'wait')
from {prefix}_key_head as h
where h.key = :key
