-- Remove a schedule. Lock, index: remove_schedule_1. Differs: none.
select {schema}.remove_schedule_1(%(name)s::text, %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
