-- Which of these jobs, still claimed by an incarnation, are recorded as ended: those that insert_completed has just taken.
-- Lock: the write lock, taken before. Index: primary keys. Differs: PostgreSQL's function returns them.
select c.id
from json_each(:ids) as asked
cross join {prefix}_claimed as c on c.incarnation = :incarnation and c.id = asked.value
cross join {prefix}_finished as f on f.id = c.id
