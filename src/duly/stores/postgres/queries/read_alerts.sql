-- Where rules stand. Lock, index: alerts_1. Differs: none.
select rule, target, state, change_id, since, changed_at, value from {schema}.alerts_1()
