-- Every queue at one moment, each lane with a job to learn its queue's name from. Lock: none. Index: the tables whole.
select lane.kind, coalesce(lane.queue, (select j.queue from {prefix}_job as j where j.id = lane.id)), lane.count, lane.extreme
from (
    select 'ready' as kind, null as queue, min(id) as id, count(*) as count, min(ready_at) as extreme
    from {prefix}_ready group by {prefix}_ready.queue
    union all
    select 'scheduled', null, min(id), count(*), min(run_at) from {prefix}_scheduled group by {prefix}_scheduled.queue
    union all
    select 'blocked', null, min(id), count(*), null from {prefix}_blocked group by {prefix}_blocked.queue
    union all
    select 'running', null, min(id), count(*), null from {prefix}_claimed group by {prefix}_claimed.queue
    union all
    select 'dead', queue, null, count(*), null from {prefix}_dead group by {prefix}_dead.queue
    union all
    select 'declared', name, null, 0, null from {prefix}_queue
    union all
    select 'pause', substr(target, 7), null, 0, until
    from {prefix}_pause
    where target like 'queue:%' and (until is null or until > :now)
) as lane
