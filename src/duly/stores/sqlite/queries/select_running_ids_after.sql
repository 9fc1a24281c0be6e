-- Ids of running jobs, the oldest first. Lock: none. Index: id, in order.
select id from {prefix}_claimed where true and id > :edge order by id asc limit :most
