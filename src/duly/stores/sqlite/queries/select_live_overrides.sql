-- Overrides that hold, the newest first. Lock: none. Index: live, in order.
select id, target, kind, value, until
from {prefix}_override
where lifted_at is null and (until is null or until > :now)
order by id desc
