-- Changes of rules, the newest first. Lock: none. Index: primary key, backwards.
select id, rule, target, state, at, value from {prefix}_alert_change where id < :before order by id desc limit :most
