-- A temporary change of policy. Lock, index: override_1. Differs: none.
select id, at, until
  from {schema}.override_1(%(target)s::text, %(kind)s::text, %(value)s::jsonb, %(lasting)s::float8, %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
