-- The batches of jobs. Lock: none. Index: primary key.
select j.id, j.batch
from json_each(:ids) as asked
cross join {prefix}_job as j on j.id = asked.value
where j.batch is not null
