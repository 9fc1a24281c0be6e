-- Jobs and their batches. Lock, index: batch_members_1. Differs: none.
select id, batch
  from {schema}.batch_members_1(%(batch)s::bigint, %(after)s::bigint, %(most)s::int, %(ids)s::bigint[])
