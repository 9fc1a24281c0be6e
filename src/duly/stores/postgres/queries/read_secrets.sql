-- The keys of a kind. Lock, index: secrets_1. Differs: none.
select kind, id, value, created_at, retired_at from {schema}.secrets_1(%(kind)s::text)
