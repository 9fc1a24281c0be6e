-- Resume a schedule. Lock, index: resume_schedule_1. Differs: none.
select {schema}.resume_schedule_1(
    %(name)s::text, %(next_at)s::timestamptz, %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
