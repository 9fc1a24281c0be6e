-- The first jobs of some lanes that wait behind a limit. Lock: the write lock, taken before. Index: gate, in order.
select id
from (select id, queue from {prefix}_blocked where gate = :gate and gate <> 0 order by priority, pos limit 1000) as found
where queue in (select value from json_each(:lanes))
limit :most
