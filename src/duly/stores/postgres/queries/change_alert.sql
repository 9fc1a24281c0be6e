-- Change where a rule stands. Lock, index: change_alert_1. Differs: none.
select {schema}.change_alert_1(%(rule)s::text, %(target)s::text, %(expected)s::bigint, %(state)s::text, %(value)s::text,
                               %(sinks)s::text[], %(kept)s::float8, %(now)s::timestamptz)
