-- What people say of one group of dead letters, and when the first of it died since, if it is fixed.
-- Lock: the write lock. Index: primary key; dead by queue and time, what has died there since.
select g.fingerprint, g.queue, g.task, g.state, g.owner, g.note, g.by, g.at, g.regressed_at,
       case when g.state = 'fixed' then (
           select d.died_at from {prefix}_dead as d
           where d.queue = g.queue and d.died_at > g.at and d.task = g.task and coalesce(d.fingerprint, '') = g.fingerprint
           order by d.died_at limit 1
       ) end
from {prefix}_dead_group as g
where g.fingerprint = :fingerprint and g.queue = :queue and g.task = :task
