-- Jobs of one task in some lanes that were parked because nobody knew it, with what is stored of each, as in select_ready.
-- Lock: the write lock, taken before. Index: cause, in order; job by primary key.
select b.id, b.queue, b.priority, b.pos, b.task, b.run, b.failed, b.lost, b.interrupted, b.snoozed, b.expires_at,
       j.queue, j.task, case when length(j.args) <= :inline then j.args end, j.tenant, j.tags, j.correlation_id,
       j.attempts, j.timeout, j.enqueued_at, j.extras, j."trigger",
       j.ordering_key, b.tenant, null
from {prefix}_blocked as b
cross join {prefix}_job as j on j.id = b.id
where b.cause = 1 and b.task = :task and b.queue in (select value from json_each(:lanes))
order by b.pos
limit :most
