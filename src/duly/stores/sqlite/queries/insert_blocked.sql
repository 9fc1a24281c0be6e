-- Set a job aside until its task is known or resumed. Lock: the write lock. Index: primary key, cause.
insert into {prefix}_blocked (id, cause, task, queue, priority, pos, run, failed, lost, interrupted, snoozed, expires_at, since)
values (:id, :cause, :task, :queue, :priority, :pos, :run, :failed, :lost, :interrupted, :snoozed, :expires_at, :since)
