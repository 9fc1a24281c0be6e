-- Queues with jobs in the lanes of tenants that do not go round them. Lock: none. Index: primary key, one probe per lane.
with recursive found (queue) as (
    select min(queue) from {prefix}_ready
    union all
    select (select min(r.queue) from {prefix}_ready as r where r.queue > found.queue) from found
    where found.queue is not null
)
select found.queue, (
    select j.queue
    from {prefix}_ready as r
    cross join {prefix}_job as j on j.id = r.id
    where r.queue = found.queue
    limit 1
)
from found
where found.queue is not null
  and (
      exists (select 1 from {prefix}_ready as r where r.queue = found.queue and r.tenant > 0)
      or exists (select 1 from {prefix}_ready as r where r.queue = found.queue and r.tenant < 0)
  )
