-- How far a limit is used: its rate, its hold, its breaker, and how many hold it; in the order asked. Lock: none.
-- Index: primary keys.
select coalesce(s.tat, 0), s.held_until, s.next_at, s.breaker_state, s.breaker_until, s.forced,
       (select count(*) from {prefix}_hold as h where h.key = asked.value and (h.until is null or h.until > :now)), s.key is not null,
       s.held_by, s.held_reason, coalesce(s.turn, 0)
from json_each(:keys) as asked
left join {prefix}_limit_state as s on s.key = asked.value
