-- Take the turn to look at the rules. Lock, index: alert_turn_1. Differs: none.
select {schema}.alert_turn_1(%(every)s::float8, %(now)s::timestamptz)
