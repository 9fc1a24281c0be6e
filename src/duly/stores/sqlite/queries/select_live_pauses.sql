-- What is paused at the moment; which version of the bounds holds, and when a limit is worth another look.
-- Lock: none. A handful of rows.
select target, null, null from {prefix}_pause where until is null or until > :now
union all
select null, version, (select min(next_at) from {prefix}_limit_state where next_at is not null)
from {prefix}_control
