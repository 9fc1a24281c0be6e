-- Store what a job is, once, with all that a plain one does not have. Lock: the write lock.
-- Index: primary key, correlation where there is one. Differs: PostgreSQL stores both kinds in one statement.
insert into {prefix}_job (
    id, queue, task, args, priority, tenant, tags, correlation_id, attempts, timeout, expires_at, enqueued_at,
    extras, unique_key, unique_live, version, "trigger",
    ordering_key, batch
) values (
    :id, :queue, :task, :args, :priority, :tenant, :tags, :correlation_id, :attempts, :timeout, :expires_at,
    :enqueued_at, :extras, :unique_key, :unique_live, :version, :trigger, :ordering_key, :batch
)
