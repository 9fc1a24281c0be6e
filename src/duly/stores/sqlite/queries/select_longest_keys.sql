-- Ordering keys, those with the most jobs first, with their owners; how many are live only where few are to be looked at.
-- Lock: none. Index: keyed whole, at most 200,000 places; job, owner and state tables by id.
select longest.key, longest.members, j.queue, j.tenant, j.ordering_key, j.enqueued_at, h.id, coalesce(h.paused, 0), h.since,
       case when c.id is not null then 'running' when r.id is not null then 'ready'
            when s.id is not null then 'scheduled' when b.id is not null then 'blocked' when d.id is not null then 'dead' end,
       case when longest.members <= 1000 then (
           select count(*)
           from {prefix}_keyed as k
           where k.key = longest.key
             and (
                 exists (select 1 from {prefix}_blocked as w where w.id = k.id)
                 or exists (select 1 from {prefix}_ready as w where w.id = k.id)
                 or exists (select 1 from {prefix}_scheduled as w where w.id = k.id)
                 or exists (select 1 from {prefix}_claimed as w where w.id = k.id)
             )
       ) end
from (
    select found.key, count(*) as members, min(found.id) as first
    from (select key, id from {prefix}_keyed limit 200000) as found
    group by found.key
) as longest
cross join {prefix}_job as j on j.id = longest.first and (:queue is null or j.queue = :queue)
left join {prefix}_key_head as h on h.key = longest.key
left join {prefix}_claimed as c on c.id = h.id
left join {prefix}_ready as r on r.id = h.id
left join {prefix}_scheduled as s on s.id = h.id
left join {prefix}_blocked as b on b.id = h.id
left join {prefix}_dead as d on d.id = h.id
order by longest.members desc
limit :most
