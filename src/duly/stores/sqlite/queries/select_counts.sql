-- What every queue has besides waiting jobs, each lane with a job to learn its queue's name from. Lock: none.
-- Index: the tables whole; they are as long as there are workers, queues and pauses.
select lane.kind, coalesce(lane.queue, (select j.queue from {prefix}_job as j where j.id = lane.id)), lane.count, lane.extreme
from (
    select 'running' as kind, null as queue, min(id) as id, count(*) as count, null as extreme
    from {prefix}_claimed group by {prefix}_claimed.queue
    union all
    select 'declared', name, null, 0, null from {prefix}_queue
    union all
    select 'pause', substr(target, 7), null, 0, until
    from {prefix}_pause
    where target like 'queue:%' and (until is null or until > :now)
) as lane
