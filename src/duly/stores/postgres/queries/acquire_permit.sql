-- Take limits outside a claim. Lock, index: acquire_1. Differs: one function call here, several statements in SQLite.
select id, names, until, refused, wait
  from {schema}.acquire_1(%(names)s::text[], %(incarnation)s::bigint, %(id)s::bigint, %(run)s::int, %(ttl)s::float8, %(now)s::timestamptz)
