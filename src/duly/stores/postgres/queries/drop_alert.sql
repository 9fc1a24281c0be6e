-- Forget a rule for a target. Lock, index: drop_alert_1. Differs: none.
select {schema}.drop_alert_1(%(rule)s::text, %(target)s::text)
