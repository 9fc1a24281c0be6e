-- Silences in force, the newest first. Lock: none. Index: the table, silences only.
select id, rule, target, by, reason, at, until from {prefix}_silence where until > :now order by id desc
