-- A breaker by hand. Lock, index: set_breaker_1. Differs: none.
select {schema}.set_breaker_1(%(name)s::text, %(state)s::text, %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
