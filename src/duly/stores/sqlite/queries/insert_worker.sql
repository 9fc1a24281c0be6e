-- A new incarnation. Lock: the write lock. Index: primary key.
insert into {prefix}_worker (
    incarnation, beat, beat_at, lease, heartbeat, host, pid, supervisor, queues, tasks, slots, version, started_at, progress_at
) values (
    :incarnation, 0, :now, :lease, :heartbeat, :host, :pid, :supervisor, :queues, :tasks, :slots, :version, :now, :now
)
