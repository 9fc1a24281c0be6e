-- Dead letters by fingerprint, queue and task, the largest group first. Lock: none. Index: dead_by_error, read alone; job by
-- primary key only where a correlation id is asked for.
select d.fingerprint, d.queue, d.task, count(*), min(d.died_at), max(d.died_at), count(d.successor)
from {prefix}_dead as d
where (:queue is null or d.queue = :queue)
  and (:task is null or d.task = :task)
  and (:tenant is null or d.tenant = :tenant)
  and (:correlation is null or exists (
      select 1 from {prefix}_job as j
      where j.id = d.id and (j.correlation_id = :correlation or (j.correlation_id is null and cast(j.id as text) = :correlation))
  ))
  and (:fingerprint is null or d.fingerprint like :fingerprint || '%')
  and (:since is null or d.enqueued_at >= :since)
  and (:until is null or d.enqueued_at < :until)
  and (:tag is null or exists (select 1 from {prefix}_job_tag as t where t.tag = :tag and t.id = d.id))
group by 1, 2, 3
order by 4 desc, 6 desc
