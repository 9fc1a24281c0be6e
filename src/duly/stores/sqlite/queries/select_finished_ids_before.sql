-- Ids of finished jobs of one status down to an id, the newest first. Lock: none. Index: primary key, one range.
select id from {prefix}_finished
where status = :value and id < :edge and id >= :until
order by id desc
limit :most
