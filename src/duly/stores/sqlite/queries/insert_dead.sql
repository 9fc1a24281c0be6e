-- Record a dead letter. Lock: the write lock. Index: primary key, queue, fingerprint.
insert into {prefix}_dead (
    id, queue, task, tenant, run, failed, lost, interrupted, snoozed, incarnation, enqueued_at, started_at, died_at,
    reason, note, error_type, error_message, error_traceback, fingerprint
) values (
    :id, :queue, :task, :tenant, :run, :failed, :lost, :interrupted, :snoozed, :incarnation, :enqueued_at, :started_at,
    :died_at, :reason, :note, :error_type, :error_message, :error_traceback, :fingerprint
)
