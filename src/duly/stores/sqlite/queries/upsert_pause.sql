-- Pause a queue or a task; the latest pause stands. Lock: the write lock. Index: primary key.
insert into {prefix}_pause (target, until, by, reason, at) values (:target, :until, :by, :reason, :at)
on conflict (target) do update
set until = excluded.until, by = excluded.by, reason = excluded.reason, at = excluded.at
