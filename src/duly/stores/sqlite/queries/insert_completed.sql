-- Record jobs as completed in their first run, as far as the incarnation holds them and they have neither follow-ups nor
-- versions (other extras are 4, a unique key, and 16, blobs); live: those that hold their key until they end, or the others,
-- whose claim has freed it. This insertion is the fence.
-- ended: {id: "started_at result"}, either may be empty. Lock: the write lock. Index: claimed and job by primary key.
-- Differs: PostgreSQL does it with all kinds of ends.
insert into {prefix}_finished (
    id, queue, queue_key, task, tenant, status, run, failed, lost, interrupted, snoozed, incarnation,
    enqueued_at, started_at, finished_at, result, correlation_id
)
select j.id, j.queue, c.queue, j.task, j.tenant, 'completed', c.run, 0, 0, 0, 0, c.incarnation,
       j.enqueued_at, max(c.claimed_at, cast(nullif(substr(ended.value, 1, instr(ended.value, ' ') - 1), '') as integer)), :now,
       cast(nullif(substr(ended.value, instr(ended.value, ' ') + 1), '') as blob), j.correlation_id
from json_each(:ended) as ended
cross join {prefix}_claimed as c on c.incarnation = :incarnation and c.id = cast(ended.key as integer)
cross join {prefix}_job as j on j.id = c.id
where c.run = 1 and j.extras & ~20 = 0 and (j.unique_live is 1) = :live
