-- Which of these references no stored job uses, in the order asked. Lock: none. Index: reference.
select asked.value
from json_each(:references) as asked
where not exists (select 1 from {prefix}_blob as b where b.ref = asked.value)
order by asked.key
