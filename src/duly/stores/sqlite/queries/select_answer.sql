-- What an idempotency record knows of a job that is no longer kept. Lock: none. Index: id.
select id, status, ended_at, result, reason
from {prefix}_idempotency
where id = :id and status is not null and until > :now
limit 1
