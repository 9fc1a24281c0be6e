-- How many jobs of a queue are ready, counted to one more than asked, and since when the oldest of those is.
-- Lock: none. Index: ready by primary key, one range. Differs: fills in PostgreSQL keeps what it counts.
select count(*), min(lane.ready_at)
from (select ready_at from {prefix}_ready where queue = :queue limit :most + 1) as lane
