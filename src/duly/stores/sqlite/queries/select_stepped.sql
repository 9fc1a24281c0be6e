-- Which of these jobs have steps or cursors. Lock: none. Index: primary key, one probe each.
select asked.value
from json_each(:ids) as asked
where exists (select 1 from {prefix}_step as s where s.id = asked.value)
