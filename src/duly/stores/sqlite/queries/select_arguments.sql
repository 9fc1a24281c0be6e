-- Payloads of any size. Lock: none. Index: primary key.
select j.id, j.args
from json_each(:ids) as asked
cross join {prefix}_job as j on j.id = asked.value
