-- Change where a rule stands. Lock: the write lock. Index: primary key.
insert into {prefix}_alert (rule, target, state, change_id, changed_at, value)
values (:rule, :target, :state, :change, :now, :value)
on conflict (rule, target) do update set state = excluded.state, change_id = excluded.change_id, since = null,
    changed_at = excluded.changed_at, value = excluded.value
