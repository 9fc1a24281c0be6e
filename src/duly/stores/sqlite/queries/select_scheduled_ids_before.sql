-- Ids of scheduled jobs, the newest first. Lock: none. Index: primary key, in order.
select id from {prefix}_scheduled where true and id < :edge order by id desc limit :most
