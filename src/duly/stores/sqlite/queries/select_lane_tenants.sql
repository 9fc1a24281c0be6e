-- The next tenants of a queue with ready jobs, each with its name and its plan. Lock: the write lock, taken before.
-- Index: ready by primary key, one probe per tenant; job and tenant by primary key.
with recursive found (tenant, count) as (
    select (
        select r.tenant from {prefix}_ready as r
        where r.queue = :queue and r.tenant > :after
        order by r.tenant limit 1
    ), 1
    union all
    select (
        select r.tenant from {prefix}_ready as r
        where r.queue = :queue and r.tenant > found.tenant
        order by r.tenant limit 1
    ), found.count + 1
    from found
    where found.tenant is not null and found.count < :most
)
select found.tenant, j.tenant, p.key is not null, p.weight, p.max_running, p.interval, p.burst
from found
cross join {prefix}_job as j on j.id = (
    select r.id from {prefix}_ready as r where r.queue = :queue and r.tenant = found.tenant limit 1
)
left join {prefix}_tenant as p on p.key = found.tenant
where found.tenant is not null
