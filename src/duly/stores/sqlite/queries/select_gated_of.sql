-- The next jobs of a tenant that wait behind a limit. Lock: the write lock, taken before. Index: gate, in order.
select id, queue
from {prefix}_blocked
where gate = :gate and gate <> 0 and tenant = :tenant
order by priority, pos
limit :most offset :given
