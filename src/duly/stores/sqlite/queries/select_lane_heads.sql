-- The first job of each priority of a lane, for the most urgent 64. Lock: the write lock, taken before.
-- Index: ready by primary key, one probe per priority.
with recursive found (priority, count) as (
    select (
        select r.priority from {prefix}_ready as r
        where r.queue = :queue and r.tenant = :tenant
        order by r.priority limit 1
    ), 1
    union all
    select (
        select r.priority from {prefix}_ready as r
        where r.queue = :queue and r.tenant = :tenant and r.priority > found.priority
        order by r.priority limit 1
    ), found.count + 1
    from found
    where found.priority is not null and found.count < 64
)
select (
        select r.pos from {prefix}_ready as r
        where r.queue = :queue and r.tenant = :tenant and r.priority = found.priority
        order by r.pos limit 1
    ), found.priority
from found
where found.priority is not null
