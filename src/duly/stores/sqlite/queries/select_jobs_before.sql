-- Ids of jobs, the newest first. Lock: none. Index: primary key, in order.
select id from {prefix}_job where true and id < :edge order by id desc limit :most
