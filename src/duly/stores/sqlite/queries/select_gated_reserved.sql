-- Jobs that wait behind a limit although they have reserved their place at it. Lock: the write lock, taken before.
-- Index: hold by primary key, one range; blocked by primary key.
select h.id
from {prefix}_hold as h
cross join {prefix}_blocked as b on b.id = h.id and b.gate = h.key
where h.key = :gate and h.incarnation = 0
