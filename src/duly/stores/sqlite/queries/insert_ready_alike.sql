-- Put newly stored jobs of one lane and task at its tail, each with its id as position. Lock: the write lock.
-- Index: primary key, id; job by primary key, one range. Differs: only here, as insert_jobs_alike.
insert into {prefix}_ready (queue, tenant, priority, pos, id, task, run, failed, lost, interrupted, snoozed, expires_at, ready_at)
select :queue, :tenant, j.priority, j.id, j.id, :task, 0, 0, 0, 0, 0, j.expires_at, j.enqueued_at
from {prefix}_job as j
where j.id between :first and :last
