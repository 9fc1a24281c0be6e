-- Every queue at one moment; each lane with a job to learn its queue's name from. Large tables are estimated (`estimated`).
-- Lock: none. Index: job_pkey, claimed whole and those of the functions. Differs: SQLite counts all.
select lane.kind, coalesce(lane.queue, (select j.queue from {schema}.job j where j.id = lane.id)), lane.n, lane.extreme,
       lane.estimated
  from (
    select 'ready' as kind, null as queue, r.id, r.n, r.oldest as extreme, r.estimated
      from {schema}.count_ready_1(%(exact)s::int, %(pages)s::int, %(sample)s::int) r
    union all
    select 'scheduled', null, s.id, s.n, s.next_due, s.estimated from {schema}.count_scheduled_1(%(pages)s::int, %(sample)s::int) s
    union all
    select 'blocked', null, b.id, b.n, null, b.estimated from {schema}.count_blocked_1(%(pages)s::int, %(sample)s::int) b
    union all
    select 'running', null, min(c.id), count(*), null, false from {schema}.claimed c group by c.queue
    union all
    select 'dead', d.queue, null, d.n, null, d.estimated
      from {schema}.count_dead_1(%(exact)s::int, %(pages)s::int, %(sample)s::int) d
    union all
    select 'declared', q.name, null, 0, null, false from {schema}.queue q
    union all
    select 'pause', substr(p.target, 7), null, 0, p.until, false from {schema}.pause p
     where p.target like 'queue:%%' and (p.until is null or p.until > coalesce(%(now)s::timestamptz, clock_timestamp()))
) as lane
