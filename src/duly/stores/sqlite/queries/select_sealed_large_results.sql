-- The next large results, with those that are encrypted. Lock: none. Index: primary key.
select r.id, '' as name, '' as queue, '' as task, '' as tenant,
       case when substr(r.result, 1, length(:prefix)) = :prefix then r.result end as data
from {prefix}_result as r
where r.id > :after
order by r.id
limit :most
