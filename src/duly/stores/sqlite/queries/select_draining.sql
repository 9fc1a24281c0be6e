-- Which of these workers were asked to end. Lock: none. Index: primary key.
select w.incarnation
from json_each(:incarnations) as asked
cross join {prefix}_worker as w on w.incarnation = asked.value
where w.draining = 1
