-- Move a tick's schedule on. Lock, index: advance_schedule_1. Differs: none.
select {schema}.advance_schedule_1(
    %(name)s::text, %(expected)s::timestamptz, %(next_at)s::timestamptz, %(last_at)s::timestamptz, %(fired)s::bigint)
