-- The ordering keys of jobs that have one, with what their queues say of dead ones. Lock: none. Index: primary keys.
select j.id, j.queue, j.tenant, j.ordering_key, coalesce(q.ordering, 'wait')
from json_each(:ids) as asked
cross join {prefix}_job as j on j.id = asked.value
left join {prefix}_queue as q on q.name = j.queue
where j.ordering_key is not null
