-- The head of one lane, with what is stored of each job, payloads only up to the inline size. Lock: the write lock, taken
-- before. Index: ready by primary key, in order; job by primary key.
select r.id, r.queue, r.priority, r.pos, r.task, r.run, r.failed, r.lost, r.interrupted, r.snoozed, r.expires_at,
       j.queue, j.task, case when length(j.args) <= :inline then j.args end, j.tenant, j.tags, j.correlation_id,
       j.attempts, j.timeout, j.enqueued_at, j.extras, j."trigger",
       j.ordering_key, r.tenant, r.since
from {prefix}_ready as r
cross join {prefix}_job as j on j.id = r.id
where r.queue = :queue and r.tenant = :tenant
order by r.priority, r.pos
limit :most
