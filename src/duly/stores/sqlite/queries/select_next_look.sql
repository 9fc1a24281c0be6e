-- When a limit is worth another look. Lock: none. Index: next, first entry.
select min(next_at) from {prefix}_limit_state where next_at is not null
