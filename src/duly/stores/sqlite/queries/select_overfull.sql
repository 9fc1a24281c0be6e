-- Queues that shed and hold more ready jobs than they may, and how many more. Lock: none, or the write lock.
-- Index: ready by primary key, the lanes of the queues that shed. Differs: shed in PostgreSQL does all.
select lane.queue, lane.over
from (
    select q.key as queue, (select count(*) from {prefix}_ready as r where r.queue = q.key) - q.max_depth as over
    from {prefix}_queue as q
    where q.when_full = 'shed' and q.max_depth is not null
) as lane
where lane.over > 0
