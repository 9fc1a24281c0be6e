-- Let nothing take a limit for a while. Lock: the write lock. Index: primary key.
insert into {prefix}_limit_state (key, name, held_until, held_by, held_reason) values (:key, :name, :held_until, :by, :reason)
on conflict (key) do update set held_until = excluded.held_until, held_by = excluded.held_by, held_reason = excluded.held_reason
