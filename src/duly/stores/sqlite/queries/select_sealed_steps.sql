-- The next steps, with the values of those whose values are encrypted. Lock: none. Index: primary key.
select s.id, s.name, '' as queue, '' as task, '' as tenant,
       case when substr(s.value, 1, length(:prefix)) = :prefix then s.value end as data
from {prefix}_step as s
where (s.id, s.name) > (:after, :after_name)
order by s.id, s.name
limit :most
