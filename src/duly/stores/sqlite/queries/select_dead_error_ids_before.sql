-- Ids of dead letters of one error, the newest first. Lock: none. Index: dead_fingerprint, one range. Differs: none.
select id from {prefix}_dead where fingerprint = :value and id < :edge order by id desc limit :most
