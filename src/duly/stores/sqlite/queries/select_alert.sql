-- Where one rule stands for one target. Lock: none. Index: primary key.
select state, change_id from {prefix}_alert where rule = :rule and target = :target
