-- When those of these jobs are due that are scheduled. Lock: the write lock, taken before. Index: primary key.
select s.id, s.run_at from json_each(:ids) as asked cross join {prefix}_scheduled as s on s.id = asked.value
