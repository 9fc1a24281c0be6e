-- The ended attempts of one job. Lock: none. Index: primary key, one range.
select run, event, incarnation, started_at, ended_at, reason, error_type, error_message, error_traceback, fingerprint
from {prefix}_attempt
where id = :id
order by run
