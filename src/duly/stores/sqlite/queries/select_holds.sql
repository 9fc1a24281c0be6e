-- Which limits these attempts hold. Lock: the write lock, taken before. Index: incarnation, id.
select h.key
from json_each(:ids) as asked
cross join {prefix}_hold as h on h.incarnation = :incarnation and h.id = asked.value
