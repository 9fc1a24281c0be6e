-- Jobs that an incarnation holds and that shall be cancelled. Lock: none. Index: wish whole, claimed by id.
select w.id
from {prefix}_wish as w
cross join {prefix}_claimed as c on c.id = w.id
where c.incarnation = :incarnation
order by w.id
