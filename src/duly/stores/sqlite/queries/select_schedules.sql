-- All schedules by name, with where the job of the last firing stands. Lock: none. Index: primary key; state tables by id.
select s.name, s.origin, s.definition, s.next_at, s.paused, s.last_at, s.last_id,
       exists (select 1 from {prefix}_ready as r where r.id = s.last_id)
       or exists (select 1 from {prefix}_scheduled as w where w.id = s.last_id)
       or exists (select 1 from {prefix}_blocked as b where b.id = s.last_id),
       exists (select 1 from {prefix}_claimed as c where c.id = s.last_id),
       s.fired, s.missed, s.created_at, s.failure, s.failed_at, s.failures
from {prefix}_schedule as s
order by s.name
