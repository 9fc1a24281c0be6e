-- Tasks with jobs set aside for a cause, each with its name. Lock: none. Index: cause, one probe per task.
with recursive parked (task) as (
    select min(task) from {prefix}_blocked where cause = :cause
    union all
    select (select min(b.task) from {prefix}_blocked as b where b.cause = :cause and b.task > parked.task)
    from parked
    where parked.task is not null
)
select parked.task, (
    select j.task
    from {prefix}_blocked as b
    cross join {prefix}_job as j on j.id = b.id
    where b.cause = :cause and b.task = parked.task
    limit 1
)
from parked
where parked.task is not null
