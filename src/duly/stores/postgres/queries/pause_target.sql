-- Pause a queue or task. Lock, index: pause_2. Differs: none.
select until, at from {schema}.pause_2(
    %(target)s::text, %(key)s::bigint, %(lasting)s::float8, %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
