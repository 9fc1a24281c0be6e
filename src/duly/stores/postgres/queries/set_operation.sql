-- Pause, resume or cancel a bulk act. Lock, index: set_operation_2. Differs: none.
select id, verb, filter::text, state, rate, priority, done, skipped, total, by, reason, created_at, ended_at, cursor, upto
  from {schema}.set_operation_2(%(id)s::bigint, %(state)s::text, %(verb)s::text, %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
