-- How many jobs wait behind each of these, at most 10,000. Lock: none. Index: gate, one range each.
select (select count(*) from (select 1 from {prefix}_blocked as b where b.gate = asked.value and b.gate <> 0 limit 10000))
from json_each(:keys) as asked
order by asked.key
