-- The latest sample of each queue. Lock: none. Index: primary key.
select s.queue, s.at, s.ready, s.finished
from {prefix}_sample as s
where s.at = (select max(latest.at) from {prefix}_sample as latest where latest.queue = s.queue)
