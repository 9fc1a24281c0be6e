-- The next jobs, with the arguments of those whose arguments are encrypted. Lock: none. Index: primary key.
select j.id, '' as name, j.queue, j.task, j.tenant,
       case when substr(j.args, 1, length(:prefix)) = :prefix then j.args end as data
from {prefix}_job as j
where j.id > :after
order by j.id
limit :most
