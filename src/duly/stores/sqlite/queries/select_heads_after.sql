-- Owners of ordering keys after a place in their order, each with whether its key is to go on without it: 1 it is gone,
-- 2 it waits behind itself. Lock: none. Index: primary key, in order; state tables by id.
select h.key,
       case when exists (select 1 from {prefix}_claimed as c where c.id = h.id)
                 or exists (select 1 from {prefix}_ready as r where r.id = h.id)
                 or exists (select 1 from {prefix}_scheduled as s where s.id = h.id) then 0
            when b.id is not null then case when b.cause = 3 and b.gate = h.key and h.paused = 0 then 2 else 0 end
            when d.id is not null and (h.paused = 1 or coalesce(q.ordering, 'wait') <> 'skip_dead') then 0
            when h.id is null and h.paused = 1
                 and not exists (select 1 from {prefix}_keyed as k where k.key = h.key) then 0
            else 1 end
from {prefix}_key_head as h
left join {prefix}_blocked as b on b.id = h.id
left join {prefix}_dead as d on d.id = h.id
left join {prefix}_queue as q on q.key = h.queue
where h.key > :after
order by h.key
limit :most
