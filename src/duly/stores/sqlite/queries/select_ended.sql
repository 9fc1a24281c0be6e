-- The (id, run, event) of attempts that this incarnation has ended: for a call whose reply was lost. Lock: none.
-- Index: attempt and finished by primary key.
select a.id, a.run, a.event
from json_each(:pairs) as asked
cross join {prefix}_attempt as a
    on a.id = json_extract(asked.value, '$[0]') and a.run = json_extract(asked.value, '$[1]')
where a.incarnation = :incarnation
union all
select f.id, f.run, 'complete'
from json_each(:pairs) as asked
cross join {prefix}_finished as f on f.id = json_extract(asked.value, '$[0]')
where f.run = json_extract(asked.value, '$[1]') and f.incarnation = :incarnation and f.status = 'completed'
