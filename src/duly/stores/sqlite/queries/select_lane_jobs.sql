-- The first jobs of a lane with their names. Lock: the write lock, taken before. Index: primary key, in order.
select r.id, r.lost, j.queue, j.task
from {prefix}_ready as r
cross join {prefix}_job as j on j.id = r.id
where r.queue = :lane
limit :most
