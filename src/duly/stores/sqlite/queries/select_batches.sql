-- Batches by id. Lock: none. Index: primary key.
select b.id, b.name, b.state, b.parent, b.total, b.completed, b.skipped, b.cancelled, b.shed, b.dead, b.created_at,
       b.closed_at, b.finished_at, b.reason, b.told, b.mourned
from json_each(:ids) as asked
cross join {prefix}_batch as b on b.id = asked.value
