-- What one tenant has ready in a queue: how many jobs, counted to one more than 1,000, and since when the one that is ready
-- longest, of the heads of at most 50 priorities, is so. Lock: none. Index: primary key, a probe per priority.
-- Differs: tenant_waits_1 in PostgreSQL looks at all.
with recursive heads (id, n) as (
    select (
        select r.id from {prefix}_ready as r where r.queue = :queue and r.tenant = :tenant order by r.priority, r.pos limit 1
    ), 1
    union all
    select (
        select r.id from {prefix}_ready as r
        where r.queue = :queue and r.tenant = :tenant and r.priority > h.priority
        order by r.priority, r.pos limit 1
    ), heads.n + 1
    from heads
    join {prefix}_ready as h on h.id = heads.id
    where heads.n < 50
)
select (select count(*) from (
           select 1 from {prefix}_ready as r where r.queue = :queue and r.tenant = :tenant limit 1001
       )),
       (select min(r.ready_at) from heads join {prefix}_ready as r on r.id = heads.id)
