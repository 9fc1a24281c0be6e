-- How many ready jobs a lane has, counted to `most`. Lock: none. Index: primary key, one range.
select count(*) from (select 1 from {prefix}_ready where queue = :queue limit :most)
