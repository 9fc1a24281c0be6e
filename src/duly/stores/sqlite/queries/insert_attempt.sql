-- Record one ended attempt. Lock: the write lock. Index: primary key.
insert into {prefix}_attempt (
    id, run, event, incarnation, started_at, ended_at, reason, error_type, error_message, error_traceback, fingerprint
) values (
    :id, :run, :event, :incarnation, :started_at, :ended_at, :reason, :error_type, :error_message, :error_traceback,
    :fingerprint
)
