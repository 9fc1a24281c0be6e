-- Keep how far the rate of a limit is, and when it is worth another look. Lock: the write lock. Index: primary key, next.
insert into {prefix}_limit_state (key, name, tat, next_at) values (:key, :name, :tat, :next_at)
on conflict (key) do update set tat = excluded.tat, next_at = excluded.next_at
