-- Dead letters of a queue that will be purged, from when, and how many are not announced yet. Lock: none. Index: queue.
select count(*), min(max(died_at + :keep, coalesce(announced_at, :now) + :notice)), sum(announced_at is null)
from {prefix}_dead
where queue = :queue and died_at <= :before
