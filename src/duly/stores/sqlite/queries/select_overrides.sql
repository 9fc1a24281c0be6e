-- Overrides that hold, the newest first, with who made them. Lock: none. Index: live, in order.
select id, target, kind, value, by, reason, at, until
from {prefix}_override
where lifted_at is null and (until is null or until > :now)
order by id desc
