-- Keep what a tenant was sold. Lock: the write lock. Index: primary key.
insert into {prefix}_tenant (key, name, weight, max_running, interval, burst, by, reason, at)
values (:key, :name, :weight, :max_running, :interval, :burst, :by, :reason, :at)
on conflict (key) do update
set weight = excluded.weight, max_running = excluded.max_running, interval = excluded.interval, burst = excluded.burst,
    by = excluded.by, reason = excluded.reason, at = excluded.at
