-- How many dead letters a queue has, counted to `most`. Lock: none. Index: dead_queue, one range.
select count(*) from (select 1 from {prefix}_dead where queue = :queue limit :most)
