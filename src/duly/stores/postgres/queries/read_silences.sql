-- Silences in force. Lock, index: silences_1. Differs: none.
select id, rule, target, by, reason, at, until from {schema}.silences_1(%(now)s::timestamptz)
