-- The first jobs of an ordering key, with what is stored of each, as in select_ready, and where each waits: 1 ready,
-- 2 behind its key. Lock: the write lock, taken before. Index: keyed by primary key, in order; the others by id.
select found.id, coalesce(r.queue, b.queue), coalesce(r.priority, b.priority), coalesce(r.pos, b.pos),
       coalesce(r.task, b.task), coalesce(r.run, b.run), coalesce(r.failed, b.failed), coalesce(r.lost, b.lost),
       coalesce(r.interrupted, b.interrupted), coalesce(r.snoozed, b.snoozed), coalesce(r.expires_at, b.expires_at),
       j.queue, j.task, case when length(j.args) <= :inline then j.args end, j.tenant, j.tags, j.correlation_id,
       j.attempts, j.timeout, j.enqueued_at, j.extras, j."trigger",
       j.ordering_key, coalesce(r.tenant, b.tenant), r.since,
       case when r.id is not null then 1 when b.id is not null then 2 end
from (select id, key from {prefix}_keyed where key = :key order by id limit :most) as found
left join {prefix}_job as j on j.id = found.id
left join {prefix}_ready as r on r.id = found.id
left join {prefix}_blocked as b on b.id = found.id and b.gate = found.key and b.cause = 3
