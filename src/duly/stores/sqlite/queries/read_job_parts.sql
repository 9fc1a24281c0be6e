-- What a job record does not say of how its job was asked for. Lock: none. Index: primary keys.
select j.priority, j.unique_key, j.unique_live, j.version, coalesce(q.fair, 0), coalesce(q.serialise, 0),
       (select json_group_array(b.ref) from {prefix}_blob as b where b.id = j.id)
from {prefix}_job as j left join {prefix}_queue as q on q.name = j.queue
where j.id = :id
