-- Every queue at one moment; each lane with a job to learn its queue's name from. Lock: none. Index: the tables whole.
-- Differs: none.
select lane.kind, coalesce(lane.queue, (select j.queue from {schema}.job j where j.id = lane.id)), lane.n, lane.extreme
  from (
    select 'ready' as kind, null as queue, min(id) as id, count(*) as n, min(ready_at) as extreme
      from {schema}.ready r group by r.queue
    union all
    select 'scheduled', null, min(id), count(*), min(run_at) from {schema}.scheduled s group by s.queue
    union all
    select 'blocked', null, min(id), count(*), null from {schema}.blocked b group by b.queue
    union all
    select 'running', null, min(id), count(*), null from {schema}.claimed c group by c.queue
    union all
    select 'dead', queue, null, count(*), null from {schema}.dead group by queue
    union all
    select 'declared', name, null, 0, null from {schema}.queue
    union all
    select 'pause', substr(target, 7), null, 0, until from {schema}.pause
     where target like 'queue:%%' and (until is null or until > coalesce(%(now)s::timestamptz, clock_timestamp()))
) as lane
