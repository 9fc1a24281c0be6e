-- Every lane with ready jobs: one of them, and when the oldest of those that are looked at became ready: the heads of up to
-- 50 priorities, of tenants in turn, and the 1,000 oldest of all. Lock: none. Index: primary key, a probe per head; ready_id.
with recursive lane (queue) as (
    select min(queue) from {prefix}_ready
    union all
    select (select min(r.queue) from {prefix}_ready as r where r.queue > lane.queue) from lane where lane.queue is not null
),
head (queue, id, n) as (
    select lane.queue,
           (select r.id from {prefix}_ready as r where r.queue = lane.queue order by r.tenant, r.priority, r.pos limit 1), 1
    from lane
    where lane.queue is not null
    union all
    select head.queue,
           -- In two steps: of a comparison of both together the index serves the first.
           coalesce(
               (
                   select r.id from {prefix}_ready as r
                   where r.queue = head.queue and r.tenant = h.tenant and r.priority > h.priority
                   order by r.priority, r.pos limit 1
               ),
               (
                   select r.id from {prefix}_ready as r
                   where r.queue = head.queue and r.tenant > h.tenant
                   order by r.tenant, r.priority, r.pos limit 1
               )
           ),
           head.n + 1
    from head
    join {prefix}_ready as h on h.id = head.id
    where head.n < 50
),
seen (queue, id, ready_at) as (
    select r.queue, r.id, r.ready_at from head join {prefix}_ready as r on r.id = head.id
    union all
    select * from (select queue, id, ready_at from {prefix}_ready order by id limit 1000)
)
select found.queue, (select j.queue from {prefix}_job as j where j.id = found.id), found.oldest
from (
    select seen.queue, min(seen.id) as id, min(seen.ready_at) as oldest from seen group by seen.queue
) as found
