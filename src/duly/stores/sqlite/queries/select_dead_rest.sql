-- How many dead letters a queue has after a place, by death. Lock: none. Index: dead_queue, one range.
select count(*) from {prefix}_dead where queue = :queue and (died_at, id) > (:at, :id)
