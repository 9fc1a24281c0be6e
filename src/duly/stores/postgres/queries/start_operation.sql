-- Store a bulk act. Lock, index: start_operation_2. Differs: none.
select id, verb, filter::text, state, rate, priority, done, skipped, total, by, reason, created_at, ended_at, cursor, upto
  from {schema}.start_operation_2(
    %(verb)s::text, %(filter)s::jsonb, %(rate)s::float8, %(priority)s::int, %(total)s::bigint, %(by)s::text, %(reason)s::text,
    %(now)s::timestamptz)
