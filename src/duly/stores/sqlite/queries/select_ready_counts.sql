-- How many jobs of each queue are ready. Lock: none. Index: ready whole.
select (select j.queue from {prefix}_job as j where j.id = lane.id), lane.count
from (select min(id) as id, count(*) as count from {prefix}_ready group by queue) as lane
