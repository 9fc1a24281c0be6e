-- The blocked jobs of every queue. Lock: none. Index: the table whole.
select (select j.queue from {prefix}_job as j where j.id = lane.id), lane.count, null
from (select min(id) as id, count(*) as count from {prefix}_blocked group by {prefix}_blocked.queue) as lane
