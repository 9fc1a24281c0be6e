-- How many jobs wait, in whatever queue, for a store that bounds them. Lock: none. Index: the tables whole.
select
    (select count(*) from {prefix}_ready)
    + (select count(*) from {prefix}_scheduled)
    + (select count(*) from {prefix}_blocked)
