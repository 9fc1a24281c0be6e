-- Those of these limits that jobs wait behind, with their names. Lock: the write lock, taken before.
-- Index: gate; limits by primary key.
select s.key, s.name
from json_each(:keys) as asked
cross join {prefix}_limit_state as s on s.key = asked.value
where exists (select 1 from {prefix}_blocked as b where b.gate = s.key and b.gate <> 0)
