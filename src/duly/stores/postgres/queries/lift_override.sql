-- End an override. Lock, index: lift_1. Differs: none.
select {schema}.lift_1(%(id)s::bigint, %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
