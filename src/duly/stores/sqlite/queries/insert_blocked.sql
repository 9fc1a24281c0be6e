-- Set a job aside until its task is known or resumed, or until what it waits behind lets it go on. Lock: the write lock.
-- Index: primary key, cause, gate.
insert into {prefix}_blocked (id, cause, task, queue, priority, pos, run, failed, lost, interrupted, snoozed, expires_at, since, gate, tenant)
values (:id, :cause, :task, :queue, :priority, :pos, :run, :failed, :lost, :interrupted, :snoozed, :expires_at, :since, :gate, :tenant)
