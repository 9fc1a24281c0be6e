-- Batches, the newest first. Lock: none. Index: primary key, one range.
select b.id, b.name, b.state, b.parent, b.total, b.completed, b.skipped, b.cancelled, b.shed, b.dead, b.created_at,
       b.closed_at, b.finished_at, b.reason, b.told, b.mourned
from {prefix}_batch as b
where b.id < :before
order by b.id desc
limit :most
