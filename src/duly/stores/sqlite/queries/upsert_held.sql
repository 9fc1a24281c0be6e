-- Let nothing take a limit for a while. Lock: the write lock. Index: primary key.
insert into {prefix}_limit_state (key, name, held_until) values (:key, :name, :held_until)
on conflict (key) do update set held_until = excluded.held_until
