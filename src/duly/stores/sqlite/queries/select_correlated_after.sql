-- Ids of jobs with a correlation id, which is a job's own id where none is stored, the oldest first. Lock: none.
-- Index: correlation, in order; primary key.
select id from {prefix}_job where correlation_id = :value and id > :edge
union all
select id from {prefix}_job
where id = cast(:value as integer) and id > :edge and correlation_id is null and cast(id as text) = :value
order by id asc limit :most
