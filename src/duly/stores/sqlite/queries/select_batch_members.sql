-- Members of a batch in the order of their ids. Lock: none. Index: batch, one range.
select j.id from {prefix}_job as j where j.batch = :id and j.id > :after order by j.id limit :most
