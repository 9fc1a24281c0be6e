-- Silence a rule. Lock, index: silence_alert_1. Differs: none.
select id, rule, target, by, reason, at, until
  from {schema}.silence_alert_1(%(rule)s::text, %(target)s::text, %(name)s::text, %(lasting)s::float8, %(by)s::text,
                                %(reason)s::text, %(now)s::timestamptz)
