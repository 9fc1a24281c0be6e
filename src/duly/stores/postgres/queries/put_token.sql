-- Keep a new token. Lock, index: put_token_1. Differs: none.
select id, name, scopes, by, created_at, expires_at, last_used_at, revoked_at, state
  from {schema}.put_token_1(%(name)s::text, %(hash)s::bytea, %(scopes)s::text[], %(lasting)s::float8, %(by)s::text,
                            %(reason)s::text, %(now)s::timestamptz)
