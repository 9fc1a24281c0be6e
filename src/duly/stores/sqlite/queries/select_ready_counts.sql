-- The ready jobs of every queue, and when the one that is ready longest became so. Lock: none. Index: the table whole.
select (select j.queue from {prefix}_job as j where j.id = lane.id), lane.count, lane.extreme
from (
    select min(id) as id, count(*) as count, min(ready_at) as extreme from {prefix}_ready group by {prefix}_ready.queue
) as lane
