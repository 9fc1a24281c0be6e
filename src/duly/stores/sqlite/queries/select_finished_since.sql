-- How many jobs of a queue ended in a span of time. Lock: none. Index: queue, two ranges.
select (select count(*) from {prefix}_finished
         where queue_key = :queue_key and (finished_at, id) > (:since, :id) and finished_at <= :now)
     + (select count(*) from {prefix}_dead where queue = :queue and died_at > :died_since and died_at <= :now)
