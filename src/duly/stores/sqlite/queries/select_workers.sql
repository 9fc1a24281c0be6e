-- Live workers and how much each holds. Lock: none. Index: claimed by primary key.
select w.incarnation, w.host, w.pid, w.supervisor, w.queues, w.slots,
       (select count(*) from {prefix}_claimed as c where c.incarnation = w.incarnation),
       w.started_at, w.beat_at, w.progress_at, w.version, w.draining
from {prefix}_worker as w
order by w.incarnation
