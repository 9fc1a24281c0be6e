-- The next blocked jobs by id: how many there are of each queue, and the last id. Lock: none.
-- Index: primary key, one range.
select (select j.queue from {prefix}_job as j where j.id = part.first), part.count, null, part.last
from (
    select min(next.id) as first, count(*) as count, max(next.id) as last
    from (select b.id, b.queue from {prefix}_blocked as b where b.id > :after order by b.id limit :most) as next
    group by next.queue
) as part
