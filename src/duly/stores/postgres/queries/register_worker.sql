-- A new incarnation. Lock, index: register_1. Differs: none.
select {schema}.register_1(
    %(host)s::text, %(pid)s::int, %(supervisor)s::text, %(queues)s::text[], %(known)s::jsonb, %(lease)s::float8,
    %(heartbeat)s::float8, %(slots)s::int, %(version)s::text, %(now)s::timestamptz)
