-- How jobs of a queue ended since a moment, or since the last trial of its dead-letter breaker was over; completed ones only as far
-- as the share needs. Lock: none. Index: dead_order, finished_order, override_key. Differs: none but for functions.
with since as (
    select greatest(%(since)s::timestamptz, (
        select max(o.lifted_at) from {schema}.override o
         where o.key = {schema}.key_of_1(%(target)s::text) and o.by = %(by)s::text)) as at
), dead as (
    select count(*) as n from (
        select 1 from {schema}.dead d cross join since
         where d.queue_key = {schema}.key_of_1(%(queue)s::text) and d.died_at > since.at limit %(most)s::int) x
)
select (select count(*) from (
            select 1 from {schema}.finished f cross join since
             where f.queue_key = {schema}.key_of_1(%(queue)s::text) and f.finished_at > since.at and f.status = 'completed'
             limit (select greatest(%(least)s::int, ceil(dead.n / %(share)s::float8))::bigint from dead)) x),
       dead.n
  from dead
