-- Ids of jobs set aside, the oldest first. Lock: none. Index: primary key, in order.
select id from {prefix}_blocked where true and id > :edge order by id asc limit :most
