-- Make fixed groups new in which a job has died since. Lock, index: regress_dead_1. Differs: none.
select fingerprint, queue, task, state, owner, note, by, at, regressed_at
  from {schema}.regress_dead_1(%(most)s::int)
