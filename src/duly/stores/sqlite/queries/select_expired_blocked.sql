-- Jobs in blocked whose time is over. Lock: the write lock, taken before. Index: expires.
select id, queue, priority, pos, task, run, failed, lost, interrupted, snoozed, expires_at, tenant
from {prefix}_blocked
where expires_at is not null and expires_at <= :now
order by expires_at
limit :most
