-- Where rules stand. Lock: none. Index: the table, one row per rule and target.
select rule, target, state, change_id, since, changed_at, value from {prefix}_alert order by rule, target
