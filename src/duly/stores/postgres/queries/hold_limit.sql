-- Hold a limit for a while. Lock, index: hold_limit_1. Differs: none.
select {schema}.hold_limit_1(%(name)s::text, %(wait)s::float8, %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
