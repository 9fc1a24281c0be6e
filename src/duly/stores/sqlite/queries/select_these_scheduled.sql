-- Named jobs, as far as they stand in scheduled. Lock: the write lock, taken before. Index: id.
select t.id, t.queue, t.priority, 0, t.task, t.run, t.failed, t.lost, t.interrupted, t.snoozed, t.expires_at, t.tenant
from json_each(:ids) as asked
cross join {prefix}_scheduled as t on t.id = asked.value
order by asked.key
