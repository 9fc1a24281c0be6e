-- One stored bulk act. Lock: none. Index: primary key.
select id, verb, filter, state, rate, priority, done, skipped, total, by, reason, created_at, ended_at, "cursor", upto
from {prefix}_operation
where id = :id
