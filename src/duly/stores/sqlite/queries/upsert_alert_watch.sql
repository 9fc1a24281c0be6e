-- Keep what was seen of a rule. Lock: the write lock. Index: primary key.
insert into {prefix}_alert (rule, target, state, change_id, since, value) values (:rule, :target, 'clear', 0, :since, :value)
on conflict (rule, target) do update set since = excluded.since, value = excluded.value
