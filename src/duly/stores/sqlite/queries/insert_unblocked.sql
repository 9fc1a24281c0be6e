-- Put blocked jobs back where they were in their lanes. Lock: the write lock. Index: primary key, id; blocked by primary key.
insert into {prefix}_ready (
    queue, tenant, priority, pos, id, task, run, failed, lost, interrupted, snoozed, expires_at, ready_at, since
)
select b.queue, b.tenant, b.priority, b.pos, b.id, b.task, b.run, b.failed, b.lost, b.interrupted, b.snoozed, b.expires_at,
       :now, case when b.cause = 4 then b.since end
from json_each(:ids) as asked
cross join {prefix}_blocked as b on b.id = asked.value
