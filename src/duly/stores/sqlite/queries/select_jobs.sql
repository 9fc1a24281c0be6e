-- What is stored of jobs, payloads only up to the inline size. Lock: none. Index: primary key.
select j.id, j.queue, j.task, case when length(j.args) <= :inline then j.args end, j.tenant, j.tags, j.correlation_id,
       j.attempts, j.timeout, j.enqueued_at, j.extras, j."trigger"
from json_each(:ids) as asked
cross join {prefix}_job as j on j.id = asked.value
