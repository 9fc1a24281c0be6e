-- Record a final state other than dead. Lock: the write lock. Index: primary key, queue.
insert into {prefix}_finished (
    id, queue, queue_key, task, tenant, status, run, failed, lost, interrupted, snoozed, incarnation,
    enqueued_at, started_at, finished_at, reason, note, result, correlation_id
) values (
    :id, :queue, :queue_key, :task, :tenant, :status, :run, :failed, :lost, :interrupted, :snoozed, :incarnation,
    :enqueued_at, :started_at, :finished_at, :reason, :note, :result, :correlation_id
)
