-- Keep what went wrong at a due time. Lock, index: fail_schedule_1. Differs: none.
select {schema}.fail_schedule_1(%(name)s::text, %(expected)s::timestamptz, %(failure)s::text, %(now)s::timestamptz)
