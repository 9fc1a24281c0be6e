-- Limits after a place in the order of their keys, each with whether nothing is to be remembered of it. Lock: none.
-- Index: primary key, in order; holds by primary key, blocked by gate.
select s.key,
       s.tat <= :now and coalesce(s.held_until, 0) <= :now and s.next_at is null and s.breaker_state is null
       and s.forced is null and s.calls = 0
       and not exists (select 1 from {prefix}_hold as h where h.key = s.key)
       and not exists (select 1 from {prefix}_blocked as b where b.gate = s.key and b.gate <> 0)
from {prefix}_limit_state as s
where s.key > :after
order by s.key
limit :most
