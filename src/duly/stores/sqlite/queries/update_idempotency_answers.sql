-- Let idempotency records say how their jobs ended, before those are forgotten; larger results are not kept.
-- Lock: the write lock. Index: idempotency by id, the others by primary key.
update {prefix}_idempotency
set status = ended.status, ended_at = ended.ended_at, result = ended.result, reason = ended.reason
from (
    select f.id, f.status, f.finished_at as ended_at, f.reason,
           case when length(f.result) <= :most then f.result end as result
    from json_each(:ids) as asked
    cross join {prefix}_finished as f on f.id = asked.value
    union all
    select d.id, 'dead', d.died_at, d.reason, null
    from json_each(:ids) as asked
    cross join {prefix}_dead as d on d.id = asked.value
) as ended
where {prefix}_idempotency.id = ended.id
