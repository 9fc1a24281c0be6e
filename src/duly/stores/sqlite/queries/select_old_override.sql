-- Whether an override has ended before. Lock: none. Index: none, they are few.
select 1 from {prefix}_override where coalesce(lifted_at, until) < :before limit 1
