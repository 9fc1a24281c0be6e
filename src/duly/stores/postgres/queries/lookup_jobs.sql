-- Jobs by id, in whatever state. Lock, index: lookup_3. Differs: none.
select id, state, queue, task, tenant, priority, tags, correlation_id, args, failed, lost, interrupted, snoozed, run,
       attempts, timeout, enqueued_at, expires_at, run_at, started_at, deadline, finished_at, incarnation, reason,
       note, result, error_type, error_message, traceback, fingerprint, progress_run, done, of, progress_note, wished, trigger, ordering_key, waits_for
  from {schema}.lookup_3(%(ids)s::bigint[])
