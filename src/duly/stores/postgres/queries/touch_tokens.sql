-- Note that tokens were used. Lock, index: touch_tokens_1. Differs: none.
select {schema}.touch_tokens_1(%(ids)s::bigint[], %(every)s::float8, %(now)s::timestamptz)
