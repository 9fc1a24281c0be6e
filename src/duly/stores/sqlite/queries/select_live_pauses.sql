-- What is paused at the moment; which version of the bounds holds, and whether a limit is worth another look.
-- Lock: none. A handful of rows.
select target, null, null from {prefix}_pause where until is null or until > :now
union all
select null, version, exists (select 1 from {prefix}_limit_state where next_at is not null and next_at <= :now)
from {prefix}_control
