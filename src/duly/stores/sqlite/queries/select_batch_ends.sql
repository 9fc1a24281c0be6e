-- How members of batches ended that are about to run again. Lock: the write lock, taken before. Index: primary keys.
select j.batch, coalesce(f.status, 'dead')
from json_each(:ids) as asked
cross join {prefix}_job as j on j.id = asked.value
left join {prefix}_finished as f on f.id = j.id
where j.batch is not null
