-- How many ready jobs a lane has after a place. Lock: none. Index: ready by primary key, one range.
select count(*)
from {prefix}_ready
where queue = :queue and (tenant, priority, pos) > (:tenant, :priority, :pos)
