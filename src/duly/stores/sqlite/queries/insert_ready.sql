-- Put a job at the tail of its lane. Lock: the write lock. Index: primary key, id.
insert into {prefix}_ready (queue, priority, pos, id, task, run, failed, lost, interrupted, snoozed, expires_at, ready_at, tenant)
values (:queue, :priority, :pos, :id, :task, :run, :failed, :lost, :interrupted, :snoozed, :expires_at, :ready_at, :tenant)
