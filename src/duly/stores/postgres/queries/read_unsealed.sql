-- Entries that no seal covers. Lock, index: unsealed_1. Differs: PostgreSQL only.
select seal, sealed, id, at, actor, verb, target, reason, detail from {schema}.unsealed_1(%(most)s::int)
