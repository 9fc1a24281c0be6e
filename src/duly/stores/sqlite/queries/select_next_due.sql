-- When the next scheduled job is due. Lock: none. Index: due time, first entry.
select min(run_at) from {prefix}_scheduled
