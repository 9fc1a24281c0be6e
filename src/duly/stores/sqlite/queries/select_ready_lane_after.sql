-- The next lane with ready jobs, and the name of its queue. Lock: none. Index: ready by primary key, one step.
select r.queue, (select j.queue from {prefix}_job as j where j.id = r.id)
from {prefix}_ready as r
where r.queue > :after
order by r.queue
limit 1
