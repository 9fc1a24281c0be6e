-- Silence a rule for a target. Lock: the write lock. Index: primary key.
insert into {prefix}_silence (rule, target, by, reason, at, until) values (:rule, :target, :by, :reason, :now, :until)
returning id
