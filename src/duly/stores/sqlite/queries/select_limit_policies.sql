-- Declared bounds. Lock: none. A row per name.
select name, max_running, interval, burst, breaker, origin from {prefix}_limit_policy
