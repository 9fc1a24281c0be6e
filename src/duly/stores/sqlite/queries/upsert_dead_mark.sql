-- Say something of a group of dead letters. Lock: the write lock. Index: primary key.
insert into {prefix}_dead_group (fingerprint, queue, task, state, owner, note, by, at, regressed_at)
values (:fingerprint, :queue, :task, :state, :owner, :note, :by, :at, :regressed_at)
on conflict (fingerprint, queue, task) do update set state = excluded.state, owner = excluded.owner, note = excluded.note,
    by = excluded.by, at = excluded.at, regressed_at = excluded.regressed_at
