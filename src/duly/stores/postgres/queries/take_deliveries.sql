-- Changes that sinks are owed. Lock, index: take_deliveries_1. Differs: none.
select id, rule, target, state, at, value, sink, delivery, tries, next_at, last_error
  from {schema}.take_deliveries_1(%(sinks)s::text[], %(lasting)s::float8, %(most)s::int, %(now)s::timestamptz)
