-- Ids of jobs with a correlation id of their own, the newest first. Lock: none. Index: correlation, in order.
select id from {prefix}_job where correlation_id = :value and id < :edge order by id desc limit :most
