-- Ordering keys, those with the most jobs first, with their owners; how many are live only where few are to be looked at.
-- Looked at are the first 20,000 keys, or those that hold the first 60,000 places; at most 10,001 places of one are counted.
-- Lock: none. Index: keyed by primary key, one range a key; job, owner and state tables by id.
-- Differs: keys_2 in PostgreSQL looks at 5,000 keys.
with recursive walked (key, room, n) as (
    select (select k.key from {prefix}_keyed as k order by k.key limit 1), 60000, 1
    union all
    select (select k.key from {prefix}_keyed as k where k.key > walked.key order by k.key limit 1),
           walked.room - (
               select count(*) from (select 1 from {prefix}_keyed as k where k.key = walked.key limit 10001)
           ),
           walked.n + 1
    from walked
    where walked.key is not null and walked.room > 0 and walked.n < 20000
),
counted as materialized (
    -- What the next step had less to spend, this one took; of the last one nothing is known.
    select walked.key, walked.room - lead(walked.room) over (order by walked.n) as members from walked
),
longest as materialized (
    select counted.key, counted.members, (
               select k.id from {prefix}_keyed as k where k.key = counted.key order by k.id limit 1
           ) as first
    from counted
    where counted.key is not null and counted.members is not null
      and (:queue is null or exists (
          select 1
          from {prefix}_job as j
          where j.queue = :queue
            and j.id = (select k.id from {prefix}_keyed as k where k.key = counted.key order by k.id limit 1)
      ))
    order by counted.members desc
    limit :most
)
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
from longest
cross join {prefix}_job as j on j.id = longest.first
left join {prefix}_key_head as h on h.key = longest.key
left join {prefix}_claimed as c on c.id = h.id
left join {prefix}_ready as r on r.id = h.id
left join {prefix}_scheduled as s on s.id = h.id
left join {prefix}_blocked as b on b.id = h.id
left join {prefix}_dead as d on d.id = h.id
order by longest.members desc
