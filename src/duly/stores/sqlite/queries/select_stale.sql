-- Which of these jobs have a version below the newest completed of their key. Lock: the write lock, taken before.
-- Index: primary keys.
select j.id
from json_each(:ids) as asked
cross join {prefix}_job as j on j.id = asked.value
cross join {prefix}_newest as n on n.key = j.unique_key
where j.version < n.version and n.until > :now
