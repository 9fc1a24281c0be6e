-- Which of these jobs have rows in other tables. Lock: the write lock, taken before. Index: primary key.
select j.id
from json_each(:ids) as asked
cross join {prefix}_job as j on j.id = asked.value
where j.extras <> 0
