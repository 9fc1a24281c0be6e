-- Which of these jobs can be redriven, with what their next rows need. Lock: the write lock, taken before. Index: id.
select j.id, coalesce(f.run, d.run), j.queue, j.task, j.tenant, j.correlation_id, j.enqueued_at, j.priority,
       j.extras, j.unique_key, j.unique_live, j.ordering_key,
       coalesce((select q.fair from {prefix}_queue as q where q.name = j.queue), 0)
from json_each(:ids) as asked
cross join {prefix}_job as j on j.id = asked.value
left join {prefix}_finished as f on f.id = j.id and f.status in ('cancelled', 'skipped')
left join {prefix}_dead as d on d.id = j.id and d.successor is null
where f.id is not null or d.id is not null
order by asked.key
