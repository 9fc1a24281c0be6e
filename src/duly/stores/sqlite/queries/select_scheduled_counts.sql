-- The scheduled jobs of every queue, and when the first is due. Lock: none. Index: the table whole.
select (select j.queue from {prefix}_job as j where j.id = lane.id), lane.count, lane.extreme
from (
    select min(id) as id, count(*) as count, min(run_at) as extreme from {prefix}_scheduled group by {prefix}_scheduled.queue
) as lane
