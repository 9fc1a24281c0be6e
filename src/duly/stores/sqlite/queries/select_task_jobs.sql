-- Some jobs of a task that were set aside for a cause, with their names. Lock: the write lock, taken before. Index: cause.
select b.id, b.lost, j.queue, j.task
from {prefix}_blocked as b
cross join {prefix}_job as j on j.id = b.id
where b.cause = :cause and b.task = :task
limit :most
