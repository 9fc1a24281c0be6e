-- Audited jobs in the order of their ids, and how they have ended, if they have. Lock: none. Index: primary keys.
select a.id, a.dead_run, j.id, j.queue, j.task, j.tenant, f.status, f.run, f.reason, d.run, d.reason
from (
    select id, dead_run from {prefix}_audited where id > :after order by id limit :most
) as a
left join {prefix}_job as j on j.id = a.id
left join {prefix}_finished as f on f.id = a.id
left join {prefix}_dead as d on d.id = a.id
order by a.id
