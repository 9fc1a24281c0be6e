-- Whether a queue has ready jobs. Lock: none. Index: ready by primary key.
select 1 from {prefix}_ready where queue = :queue limit 1
