-- The queues that have finished jobs. Lock: none. Index: queue, one probe per queue.
with recursive found (key) as (
    select min(queue_key) from {prefix}_finished
    union all
    select (select min(f.queue_key) from {prefix}_finished as f where f.queue_key > found.key) from found
    where found.key is not null
)
select found.key, (select f.queue from {prefix}_finished as f where f.queue_key = found.key limit 1)
from found
where found.key is not null
