-- Which of these jobs are dead letters. Lock: the write lock, taken before. Index: primary key.
select d.id from json_each(:ids) as asked cross join {prefix}_dead as d on d.id = asked.value order by asked.key
