-- Keep a change of a rule. Lock: the write lock. Index: primary key.
insert into {prefix}_alert_change (rule, target, state, at, value) values (:rule, :target, :state, :now, :value) returning id
