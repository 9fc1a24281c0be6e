-- Attempts whose incarnation has no worker row, with what their next rows need. Lock: the write lock, taken before.
-- Index: claimed whole, it holds what runs now; worker by primary key.
select c.incarnation, c.id, c.run, c.queue, c.task, c.priority, c.failed, c.lost, c.interrupted, c.snoozed, c.claimed_at,
       j.queue, j.task, j.tenant, j.correlation_id, j.enqueued_at, c.expires_at, j.extras, w.by, w.reason, c.tenant
from {prefix}_claimed as c
cross join {prefix}_job as j on j.id = c.id
left join {prefix}_wish as w on w.id = c.id
where not exists (select 1 from {prefix}_worker as live where live.incarnation = c.incarnation)
order by c.incarnation, c.id
limit :most
