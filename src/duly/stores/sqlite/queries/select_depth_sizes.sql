-- Whether there are few enough jobs in each waiting state to count them for every look: counted to `most`.
-- Lock: none. Index: at most so many rows of one index of each table.
select (select count(*) from (select 1 from {prefix}_ready limit :most)) as ready,
       (select count(*) from (select 1 from {prefix}_scheduled limit :most)) as scheduled,
       (select count(*) from (select 1 from {prefix}_blocked limit :most)) as blocked,
       (select count(*) from (select 1 from {prefix}_dead limit :most)) as dead
