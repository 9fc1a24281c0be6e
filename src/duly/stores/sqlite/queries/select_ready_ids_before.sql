-- Ids of ready jobs, the newest first. Lock: none. Index: id, in order.
select id from {prefix}_ready where true and id < :edge order by id desc limit :most
