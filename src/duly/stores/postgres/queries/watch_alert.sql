-- Keep what was seen of a rule. Lock, index: watch_alert_1. Differs: none.
select {schema}.watch_alert_1(%(rule)s::text, %(target)s::text, %(since)s::timestamptz, %(value)s::text)
