-- What became of one change. Lock, index: deliveries_1. Differs: none.
select id, rule, target, state, at, value, sink, delivery, tries, next_at, last_error
  from {schema}.deliveries_1(%(change)s::bigint)
