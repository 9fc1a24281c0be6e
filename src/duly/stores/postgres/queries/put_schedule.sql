-- Store a schedule at run time. Lock, index: put_schedule_1. Differs: none.
select {schema}.put_schedule_1(%(name)s::text, %(definition)s::jsonb, %(first)s::timestamptz, %(now)s::timestamptz)
