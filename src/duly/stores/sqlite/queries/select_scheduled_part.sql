-- The next scheduled jobs by id: how many there are of each queue, when the first is due, and the last id. Lock: none.
-- Index: primary key, one range.
select (select j.queue from {prefix}_job as j where j.id = part.first), part.count, part.extreme, part.last
from (
    select min(next.id) as first, count(*) as count, min(next.run_at) as extreme, max(next.id) as last
    from (
        select s.id, s.queue, s.run_at from {prefix}_scheduled as s where s.id > :after order by s.id limit :most
    ) as next
    group by next.queue
) as part
