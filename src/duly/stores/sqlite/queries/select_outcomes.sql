-- How jobs of a queue ended since a moment, or since the last trial of its dead-letter breaker was over; completed ones only as
-- far as the share needs. Lock: none. Index: dead and finished by queue; overrides are few.
with since (at) as (
    select max(:since, coalesce((
        select max(o.lifted_at) from {prefix}_override as o where o.target = :target and o.by = :by), 0))
),
dead (n) as (
    select count(*) from (
        select 1 from {prefix}_dead as d, since where d.queue = :queue and d.died_at > since.at limit :most)
)
select
    (select count(*) from (
        select 1 from {prefix}_finished as f, since
        where f.queue_key = :queue_key and f.finished_at > since.at and f.status = 'completed'
        limit (select max(:least, cast(dead.n / :share as integer) + 1) from dead))),
    dead.n
from dead
