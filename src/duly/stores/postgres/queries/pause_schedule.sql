-- Pause a schedule. Lock, index: pause_schedule_1. Differs: none.
select {schema}.pause_schedule_1(%(name)s::text, %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
