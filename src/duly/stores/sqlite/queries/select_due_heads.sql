-- When the first of the next scheduled jobs of each queue is due, of so many that are looked at. Lock: none.
-- Index: scheduled_due, one range.
select (select j.queue from {prefix}_job as j where j.id = first.id), first.run_at
from (
    select min(due.id) as id, min(due.run_at) as run_at
    from (select s.id, s.queue, s.run_at from {prefix}_scheduled as s order by s.run_at, s.id limit :most) as due
    group by due.queue
) as first
