-- Where the so-manieth ready job of a lane after a place stands; no row when there are fewer.
-- Lock: none. Index: ready by primary key, one range.
select tenant, priority, pos
from {prefix}_ready
where queue = :queue and (tenant, priority, pos) > (:tenant, :priority, :pos)
order by tenant, priority, pos
limit 1 offset :most - 1
