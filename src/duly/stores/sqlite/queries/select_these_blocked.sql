-- Named jobs, as far as they stand in blocked. Lock: the write lock, taken before. Index: id.
select t.id, t.queue, t.priority, t.pos, t.task, t.run, t.failed, t.lost, t.interrupted, t.snoozed, t.expires_at, t.tenant
from json_each(:ids) as asked
cross join {prefix}_blocked as t on t.id = asked.value
order by asked.key
