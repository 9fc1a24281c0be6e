-- Cancel in a caller's transaction. Lock, index: cancel_1. Differs: PostgreSQL only.
select id, running from {schema}.cancel_1(%(ids)s::bigint[], %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
