-- The next job of a lane within its priority. Lock: the write lock, taken before. Index: ready by primary key, in order.
select pos
from {prefix}_ready
where queue = :queue and tenant = :tenant and priority = :priority and pos > :pos
order by pos
limit 1
