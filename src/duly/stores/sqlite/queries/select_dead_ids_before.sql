-- Ids of dead letters, the newest first. Lock: none. Index: primary key, in order.
select id from {prefix}_dead where true and id < :edge order by id desc limit :most
