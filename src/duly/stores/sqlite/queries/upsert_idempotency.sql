-- Record an idempotency key, over one whose time is over. Lock: the write lock. Index: primary key, id, until.
insert into {prefix}_idempotency (key, id, args_hash, until) values (:key, :id, :args_hash, :until)
on conflict (key) do update
set id = excluded.id, args_hash = excluded.args_hash, until = excluded.until,
    status = null, ended_at = null, result = null, reason = null
