-- Pause a queue or task. Lock, index: pause_1. Differs: none.
select until, at from {schema}.pause_1(
    %(target)s::text, %(key)s::bigint, %(lasting)s::float8, %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
