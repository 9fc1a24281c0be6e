-- Stored bulk acts, the latest first. Lock: none. Index: operation_pkey. Differs: none.
select id, verb, filter::text, state, rate, priority, done, skipped, total, by, reason, created_at, ended_at, cursor, upto
  from {schema}.operation order by id desc limit 200
