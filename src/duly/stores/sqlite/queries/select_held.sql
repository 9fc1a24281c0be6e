-- The live attempts of jobs, with what their next rows need. Lock: the write lock, taken before.
-- Index: claimed and job by primary key.
select c.incarnation, c.id, c.run, c.queue, c.task, c.priority, c.failed, c.lost, c.interrupted, c.snoozed, c.claimed_at,
       j.queue, j.task, j.tenant, j.correlation_id, j.enqueued_at, c.expires_at, j.extras, w.by, w.reason, c.tenant
from json_each(:ids) as asked
cross join {prefix}_claimed as c on c.incarnation = :incarnation and c.id = asked.value
cross join {prefix}_job as j on j.id = c.id
left join {prefix}_wish as w on w.id = c.id
