-- Batches whose members have all ended, or whose first has died, and that nobody has looked at since; and those that were
-- cancelled and still have members. Lock: none. Index: unfinished; members of cancelled ones by batch.
select b.id, 0
from {prefix}_batch as b
where b.finished_at is null
  and ((b.state = 'running' and b.total <= b.completed + b.skipped + b.cancelled + b.shed + b.dead)
       or (b.dead > 0 and b.mourned = 0))
union all
select b.id, 1
from {prefix}_batch as b
where b.finished_at > :since and b.state = 'cancelled'
  and b.total > b.completed + b.skipped + b.cancelled + b.shed + b.dead
limit :most
