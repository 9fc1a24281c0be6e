-- Seals of the audit. Lock, index: audit_seals_1. Differs: none.
select id, first, last, count, digest, previous, at
  from {schema}.audit_seals_1(%(before)s::bigint, %(after)s::bigint, %(most)s::int)
