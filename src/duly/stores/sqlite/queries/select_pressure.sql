-- What is declared of how much a queue may hold, and what it has turned away since a moment.
-- Lock: none. Index: primary keys. Differs: read_pressures in PostgreSQL reads many queues.
select q.max_depth, q.max_age, q.when_full, q.importance, q.wait_target, r.jobs, r.at, s.jobs, s.at
from (select :name as name) as asked
left join {prefix}_queue as q on q.name = asked.name
left join {prefix}_turned_away as r on r.queue = :queue and r.kind = 1 and r.at > :since
left join {prefix}_turned_away as s on s.queue = :queue and s.kind = 2 and s.at > :since
