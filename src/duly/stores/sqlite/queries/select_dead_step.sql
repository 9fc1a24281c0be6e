-- Where the so-manieth dead letter of a queue after a place stands, by death; no row when there are fewer.
-- Lock: none. Index: dead_queue, one range.
select died_at, id
from {prefix}_dead
where queue = :queue and (died_at, id) > (:at, :id)
order by died_at, id
limit 1 offset :most - 1
