-- What a tenant was sold. Lock, index: set_plan_1. Differs: none.
select {schema}.set_plan_1(
    %(name)s::text, %(weight)s::int, %(most)s::int, %(interval)s::float8, %(burst)s::int, %(by)s::text, %(reason)s::text,
    %(now)s::timestamptz)
