-- Second half of a cancel. Lock, index: settle_cancel_2. Differs: PostgreSQL only.
select id, running from {schema}.settle_cancel_2(%(ids)s::bigint[], %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
