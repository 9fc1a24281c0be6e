-- Record a declared bound. Lock: the write lock. Index: primary key.
insert into {prefix}_limit_policy (name, max_running, interval, burst, breaker, origin)
values (:name, :max_running, :interval, :burst, :breaker, :origin)
on conflict (name) do update
set max_running = excluded.max_running, interval = excluded.interval, burst = excluded.burst,
    breaker = excluded.breaker, origin = excluded.origin
