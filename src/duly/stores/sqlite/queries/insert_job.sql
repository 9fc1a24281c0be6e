-- Store what a job is, once. Lock: the write lock. Index: primary key, correlation where there is one.
insert into {prefix}_job (id, queue, task, args, priority, tenant, tags, correlation_id, attempts, timeout, expires_at, enqueued_at)
values (:id, :queue, :task, :args, :priority, :tenant, :tags, :correlation_id, :attempts, :timeout, :expires_at, :enqueued_at)
