-- Ended attempts of one job. Lock: none. Index: attempt_pkey. Differs: none.
select run, event, incarnation, started_at, ended_at, reason, error_type, error_message, traceback, fingerprint
  from {schema}.attempt where id = %(id)s::bigint order by run
