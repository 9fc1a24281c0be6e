-- What happened in a span of time. Lock: none. Index: primary key.
select at, queue, task, completed, skipped, dead, cancelled, shed, failed, lost, timeout, redelivered, redriven, suppressed,
       waited, ran
from {prefix}_tally
where span = :span and at >= :since and at < :until
  and (:queues is null or queue in (select value from json_each(:queues)))
  and (:tasks is null or task in (select value from json_each(:tasks)))
order by at, queue, task
