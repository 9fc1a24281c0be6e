-- Fixed groups in which a job has died since. Lock: none. Index: the table, groups only; dead by queue and time.
select g.fingerprint, g.queue, g.task
from {prefix}_dead_group as g
where g.state = 'fixed' and exists (
    select 1 from {prefix}_dead as d
    where d.queue = g.queue and d.died_at > g.at and d.task = g.task and coalesce(d.fingerprint, '') = g.fingerprint
)
order by g.fingerprint, g.queue, g.task
limit :most
