-- Forget a former key. Lock, index: forget_secret_1. Differs: none.
select {schema}.forget_secret_1(%(kind)s::text, %(id)s::int, %(by)s::text, %(reason)s::text, %(now)s::timestamptz)
