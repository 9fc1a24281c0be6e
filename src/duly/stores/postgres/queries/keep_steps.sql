-- Keep finished steps. Lock, index: keep_steps_1. Differs: none.
select place, held
  from {schema}.keep_steps_1(%(incarnation)s::bigint, %(ids)s::bigint[], %(runs)s::int[], %(names)s::text[], %(values)s::bytea[])
