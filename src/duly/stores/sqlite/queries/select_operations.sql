-- Stored bulk acts, the latest first. Lock: none.
select id, verb, filter, state, rate, priority, done, skipped, total, by, reason, created_at, ended_at, "cursor", upto
from {prefix}_operation
order by id desc
limit :most
