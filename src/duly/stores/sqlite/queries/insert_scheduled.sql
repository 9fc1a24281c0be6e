-- Let a job wait for its time. Lock: the write lock. Index: primary key, due time.
insert into {prefix}_scheduled (id, run_at, queue, task, priority, run, failed, lost, interrupted, snoozed, expires_at, tenant)
values (:id, :run_at, :queue, :task, :priority, :run, :failed, :lost, :interrupted, :snoozed, :expires_at, :tenant)
