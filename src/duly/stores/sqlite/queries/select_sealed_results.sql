-- The next finished jobs, with the results of those whose results are encrypted. Lock: none. Index: primary key.
select f.id, '' as name, f.queue, f.task, f.tenant,
       case when substr(f.result, 1, length(:prefix)) = :prefix then f.result end as data
from {prefix}_finished as f
where f.id > :after
order by f.id
limit :most
