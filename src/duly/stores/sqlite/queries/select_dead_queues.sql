-- The queues that have dead letters. Lock: none. Index: queue, one probe per queue.
with recursive found (queue) as (
    select min(queue) from {prefix}_dead
    union all
    select (select min(d.queue) from {prefix}_dead as d where d.queue > found.queue) from found
    where found.queue is not null
)
select queue from found where queue is not null
