-- Move one attempt's deadline. Lock, index: extend_1. Differs: none.
select {schema}.extend_1(%(incarnation)s::bigint, %(id)s::bigint, %(run)s::int, %(by)s::float8, %(now)s::timestamptz)
