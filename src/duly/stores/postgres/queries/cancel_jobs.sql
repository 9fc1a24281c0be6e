-- Cancel in a caller's transaction. Lock, index: cancel_2. Differs: PostgreSQL only.
select id, running from {schema}.cancel_2(%(ids)s::bigint[], %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
