-- What ended within a span of time, per queue, task and minute.
-- Lock: none. Index: finished and dead by queue and time, one range per queue; attempt and audit_entry by time.
with recursive finished_in (key) as (
    select min(queue_key) from {prefix}_finished
    union all
    select (select min(f.queue_key) from {prefix}_finished as f where f.queue_key > finished_in.key) from finished_in
    where finished_in.key is not null
),
dead_in (queue) as (
    select min(queue) from {prefix}_dead
    union all
    select (select min(d.queue) from {prefix}_dead as d where d.queue > dead_in.queue) from dead_in
    where dead_in.queue is not null
),
part (queue, task, at, completed, skipped, dead, cancelled, shed, failed, lost, timeout, redelivered, redriven, suppressed,
      waited, ran) as (
    select f.queue, f.task, f.finished_at, f.status = 'completed', f.status = 'skipped', 0, f.status = 'cancelled',
           f.status = 'shed', 0, 0, 0, 0, 0,
           f.status = 'skipped' and coalesce(f.reason = 'stale' or f.reason like 'replaced by job %', 0),
           iif(f.status = 'completed', max(coalesce(f.started_at - f.enqueued_at, 0), 0), 0),
           iif(f.status = 'completed', max(coalesce(f.finished_at - f.started_at, 0), 0), 0)
    from finished_in
    cross join {prefix}_finished as f
        on f.queue_key = finished_in.key and f.finished_at >= :since and f.finished_at < :until
    union all
    select d.queue, d.task, d.died_at, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
    from dead_in
    cross join {prefix}_dead as d on d.queue = dead_in.queue and d.died_at >= :since and d.died_at < :until
    union all
    select j.queue, j.task, a.ended_at, 0, 0, 0, 0, 0, a.event = 'fail', a.event = 'lose',
           coalesce(a.event = 'fail' and a.error_type = 'Timeout', 0), a.event = 'interrupt', 0, 0, 0, 0
    from {prefix}_attempt as a
    cross join {prefix}_job as j on j.id = a.id
    where a.ended_at >= :since and a.ended_at < :until
      and (a.event in ('fail', 'lose') or (a.event = 'interrupt' and a.started_at is not null))
    union all
    select j.queue, j.task, e.at, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0
    from {prefix}_audit_entry as e
    cross join json_each(e.detail, '$.ids') as i
    cross join {prefix}_job as j on j.id = i.value
    where e.at >= :since and e.at < :until and e.verb = 'redrive'
)
select at - at % 60000000, queue, task, sum(completed), sum(skipped), sum(dead), sum(cancelled), sum(shed), sum(failed),
       sum(lost), sum(timeout), sum(redelivered), sum(redriven), sum(suppressed), sum(waited), sum(ran)
from part
group by 1, 2, 3
