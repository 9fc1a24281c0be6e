-- Scheduled jobs whose time has come, with a wish to cancel where there is one. Lock: the write lock, taken before.
-- Index: due time, in order; wish by primary key.
select s.id, s.queue, s.priority, 0, s.task, s.run, s.failed, s.lost, s.interrupted, s.snoozed, s.expires_at, s.tenant,
       w.by, w.reason
from {prefix}_scheduled as s
left join {prefix}_wish as w on w.id = s.id
where s.run_at <= :now
order by s.run_at, s.id
limit :most
