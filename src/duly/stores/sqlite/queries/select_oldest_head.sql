-- Since when the one is ready that is so longest, of the heads of a queue's first 200 tenants and priorities. Lock: none.
-- Index: primary key, a probe per head. Differs: crossings_1 in PostgreSQL.
with recursive heads (id, n) as (
    select (
        select r.id from {prefix}_ready as r where r.queue = :queue order by r.tenant, r.priority, r.pos limit 1
    ), 1
    union all
    select (
        select r.id from {prefix}_ready as r
        where r.queue = :queue and (r.tenant, r.priority) > (h.tenant, h.priority)
        order by r.tenant, r.priority, r.pos limit 1
    ), heads.n + 1
    from heads
    join {prefix}_ready as h on h.id = heads.id
    where heads.n < 200
)
select min(r.ready_at) from heads join {prefix}_ready as r on r.id = heads.id
