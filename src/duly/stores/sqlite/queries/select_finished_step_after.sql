-- The so-manieth finished job after an id; no row when there are fewer. Lock: none. Index: primary key, one range.
select id from {prefix}_finished where id > :edge order by id asc limit 1 offset :most - 1
