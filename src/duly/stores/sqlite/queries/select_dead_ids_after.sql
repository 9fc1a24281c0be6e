-- Ids of dead letters, the oldest first. Lock: none. Index: primary key, in order.
select id from {prefix}_dead where true and id > :edge order by id asc limit :most
