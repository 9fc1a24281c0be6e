-- Move a schedule on and enqueue for it. Lock, index: fire_schedule_1. Differs: none.
select id, run_at, outcome from {schema}.fire_schedule_1(
    %(name)s::text, %(expected)s::timestamptz, %(next_at)s::timestamptz, %(last_at)s::timestamptz, %(specs)s::jsonb,
    %(args)s::bytea[], %(missed)s::bigint, %(now)s::timestamptz)
