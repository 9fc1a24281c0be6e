-- Let newly stored jobs of one lane and task wait for one time. Lock: the write lock. Index: primary key, due time; job by
-- primary key, one range. Differs: only here, as insert_jobs_alike.
insert into {prefix}_scheduled (id, run_at, queue, task, priority, run, failed, lost, interrupted, snoozed, expires_at, tenant)
select j.id, :run_at, :queue, :task, j.priority, 0, 0, 0, 0, 0, j.expires_at, :tenant
from {prefix}_job as j
where j.id between :first and :last
