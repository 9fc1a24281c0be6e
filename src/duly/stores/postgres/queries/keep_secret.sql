-- Keep a key. Lock, index: keep_secret_1. Differs: none.
select kind, id, value, created_at, retired_at
  from {schema}.keep_secret_1(%(kind)s::text, %(value)s::bytea, %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
