-- Keep a finished step. Lock, index: keep_step_1. Differs: none.
select {schema}.keep_step_1(%(incarnation)s::bigint, %(id)s::bigint, %(run)s::int, %(name)s::text, %(value)s::bytea)
