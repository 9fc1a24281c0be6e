-- What tenants were sold. Lock: none. A row per plan, by name.
select name, weight, max_running, interval, burst from {prefix}_tenant order by name
