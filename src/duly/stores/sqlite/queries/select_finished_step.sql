-- When the so-manieth job of a queue that ended after a moment did so; no row when there are fewer.
-- Lock: none. Index: finished_queue, one range.
select finished_at, id
from {prefix}_finished
where queue_key = :queue_key and (finished_at, id) > (:since, :id) and finished_at <= :now
order by finished_at, id
limit 1 offset :most - 1
