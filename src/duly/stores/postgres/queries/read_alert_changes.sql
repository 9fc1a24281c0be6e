-- Changes of rules. Lock, index: alert_changes_1. Differs: none.
select id, rule, target, state, at, value from {schema}.alert_changes_1(%(before)s::bigint, %(most)s::int)
