-- Ids of dead letters of one error, the newest first. Lock: none. Index: dead_fingerprint, one range. Differs: none.
select id from {schema}.dead
 where fingerprint = %(value)s::text and id < %(edge)s::bigint order by id desc limit %(most)s::int
