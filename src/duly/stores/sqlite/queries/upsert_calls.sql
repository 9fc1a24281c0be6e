-- Count what workers have seen of a resource. Lock: the write lock. Index: primary key.
insert into {prefix}_limit_state (key, name, window_at, calls, failures)
values (:key, :name, :window_at, :calls, :failures)
on conflict (key) do update
set window_at = excluded.window_at, calls = excluded.calls, failures = excluded.failures
