-- When the next scheduled job is due, and when a limit is worth another look. Lock: none. Index: due time; next.
select (select min(run_at) from {prefix}_scheduled),
       (select min(next_at) from {prefix}_limit_state where next_at is not null)
