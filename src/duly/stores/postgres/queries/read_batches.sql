-- Batches as read. Lock, index: batches_1. Differs: none.
select id, name, state, parent, total, completed, skipped, cancelled, shed, dead, created_at, closed_at, finished_at, reason
  from {schema}.batches_1(%(ids)s::bigint[], %(before)s::bigint, %(most)s::int)
