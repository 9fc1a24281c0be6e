-- Give a job to an incarnation. Lock: the write lock. Index: primary key, id.
insert into {prefix}_claimed (incarnation, id, run, queue, task, priority, failed, lost, interrupted, snoozed, expires_at, claimed_at, deadline, tenant)
values (:incarnation, :id, :run, :queue, :task, :priority, :failed, :lost, :interrupted, :snoozed, :expires_at, :claimed_at, :deadline, :tenant)
