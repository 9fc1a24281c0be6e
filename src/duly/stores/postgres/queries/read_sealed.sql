-- The entries under a seal. Lock, index: audit_entries_1. Differs: none.
select id, at, actor, verb, target, reason, detail from {schema}.audit_entries_1(%(seal)s::bigint)
