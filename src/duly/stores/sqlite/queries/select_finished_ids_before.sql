-- Ids of finished jobs of one status, the newest first. Lock: none. Index: primary key, in order.
select id from {prefix}_finished where status = :value and id < :edge order by id desc limit :most
