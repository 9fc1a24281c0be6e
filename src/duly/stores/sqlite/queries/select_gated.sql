-- The first jobs that wait behind something. Lock: the write lock, taken before. Index: gate, in order.
select id from {prefix}_blocked where gate = :gate and gate <> 0 order by priority, pos limit :most
