-- Jobs that wait behind something, tenant by tenant. Lock: the write lock, taken before. Index: gate, in order.
select id, queue from {prefix}_blocked where gate = :gate and gate <> 0 order by tenant, priority, pos limit :most
