-- What people say of groups of dead letters. Lock, index: dead_marks_1. Differs: none.
select fingerprint, queue, task, state, owner, note, by, at, regressed_at
  from {schema}.dead_marks_1(%(fingerprints)s::text[], %(most)s::int)
