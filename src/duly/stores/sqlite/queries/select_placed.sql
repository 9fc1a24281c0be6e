-- Jobs at places of a lane, in the order asked, with what is stored of each, as in select_ready. places: [[priority, pos], ...].
-- Lock: the write lock, taken before. Index: ready by primary key; job by primary key.
select r.id, r.queue, r.priority, r.pos, r.task, r.run, r.failed, r.lost, r.interrupted, r.snoozed, r.expires_at,
       j.queue, j.task, case when length(j.args) <= :inline then j.args end, j.tenant, j.tags, j.correlation_id,
       j.attempts, j.timeout, j.enqueued_at, j.extras, j."trigger",
       j.ordering_key, r.tenant, r.since
from json_each(:places) as asked
cross join {prefix}_ready as r
    on r.queue = :queue and r.tenant = :tenant
    and r.priority = json_extract(asked.value, '$[0]') and r.pos = json_extract(asked.value, '$[1]')
cross join {prefix}_job as j on j.id = r.id
