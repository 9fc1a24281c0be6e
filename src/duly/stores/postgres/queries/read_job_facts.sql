-- One job with what stands around it, from one statement. Lock, index: lookup_3, facts_1. Differs: SQLite reads in one snapshot.
select l.id, l.state, l.queue, l.task, l.tenant, l.priority, l.tags, l.correlation_id, l.args, l.failed, l.lost, l.interrupted,
       l.snoozed, l.run, l.attempts, l.timeout, l.enqueued_at, l.expires_at, l.run_at, l.started_at, l.deadline, l.finished_at,
       l.incarnation, l.reason, l.note, l.result, l.error_type, l.error_message, l.traceback, l.fingerprint, l.progress_run,
       l.done, l.of, l.progress_note, l.wished, l.trigger, l.ordering_key, l.waits_for,
       f.ahead, f.serving, f.knowing, f.head, h.state, f.key_paused, f.before, f.limits, f.held_names, f.held_ids
  from {schema}.lookup_3(array[%(id)s::bigint]) l
 cross join lateral {schema}.facts_1(l.id, %(most)s::int) f
  left join lateral {schema}.lookup_3(array[f.head]) h on true
