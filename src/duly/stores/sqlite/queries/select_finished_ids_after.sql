-- Ids of finished jobs of one status up to an id, the oldest first. Lock: none. Index: primary key, one range.
select id from {prefix}_finished
where status = :value and id > :edge and id <= :until
order by id asc
limit :most
