-- Keep how far the rate of a limit is, when it is worth another look, and whose turn it was. Lock: the write lock.
-- Index: primary key, next.
insert into {prefix}_limit_state (key, name, tat, next_at, turn) values (:key, :name, :tat, :next_at, :turn)
on conflict (key) do update set tat = excluded.tat, next_at = excluded.next_at, turn = excluded.turn
