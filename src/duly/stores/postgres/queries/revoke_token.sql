-- Revoke a token. Lock, index: revoke_token_1. Differs: none.
select {schema}.revoke_token_1(%(id)s::bigint, %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
