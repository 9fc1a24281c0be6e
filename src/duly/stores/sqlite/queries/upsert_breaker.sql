-- Open or close a breaker; what was counted before says nothing any more. Lock: the write lock. Index: primary key.
insert into {prefix}_limit_state (key, name, breaker_state, breaker_until, forced)
values (:key, :name, :state, :until, :forced)
on conflict (key) do update
set breaker_state = excluded.breaker_state, breaker_until = excluded.breaker_until, forced = excluded.forced,
    window_at = null, calls = 0, failures = 0
