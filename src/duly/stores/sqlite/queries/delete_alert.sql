-- Forget a rule for a target. Lock: the write lock. Index: primary key.
delete from {prefix}_alert where rule = :rule and target = :target
