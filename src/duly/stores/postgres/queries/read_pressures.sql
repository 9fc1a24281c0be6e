-- How much queues may hold and what they have turned away lately. Lock, index: pressures_1. Differs: select_pressures.
select name, max_depth, max_age, when_full, importance, wait_target, refused, refused_at, shed, shed_at
  from {schema}.pressures_1(%(queues)s::text[], %(now)s::timestamptz)
