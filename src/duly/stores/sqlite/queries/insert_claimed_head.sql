-- Give the head of a lane up to the last row read to an incarnation. Lock: the write lock.
-- Index: ready by primary key, one range; job by primary key. Differs: PostgreSQL inserts what it could lock.
insert into {prefix}_claimed (
    incarnation, id, run, queue, task, priority, failed, lost, interrupted, snoozed, expires_at, claimed_at, deadline, tenant
)
select :incarnation, r.id, r.run + 1, r.queue, r.task, r.priority, r.failed, r.lost, r.interrupted, r.snoozed,
       r.expires_at, :now, :now + coalesce(j.timeout, :timeout), r.tenant
from {prefix}_ready as r
cross join {prefix}_job as j on j.id = r.id
where r.queue = :queue and r.tenant = :tenant and (r.priority, r.pos) <= (:priority, :pos)
