-- What is left of a permit. Lock: the write lock, taken before. Index: hold by primary key.
select h.key, h.until
from json_each(:keys) as asked
cross join {prefix}_hold as h on h.key = asked.value and h.id = :id and h.incarnation = :incarnation
