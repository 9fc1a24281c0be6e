-- The token of a hash, or all. Lock, index: token_1. Differs: none.
select id, name, scopes, by, created_at, expires_at, last_used_at, revoked_at, state
  from {schema}.token_1(%(hash)s::bytea, %(now)s::timestamptz)
