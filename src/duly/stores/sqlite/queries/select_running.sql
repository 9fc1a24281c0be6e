-- Which of these jobs run. Lock: the write lock, taken before. Index: id.
select c.id from json_each(:ids) as asked cross join {prefix}_claimed as c on c.id = asked.value order by asked.key
