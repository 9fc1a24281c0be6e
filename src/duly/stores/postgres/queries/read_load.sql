-- Readings of the load of the last minutes, oldest first. Lock: none. Index: load_sample_pkey. Differs: PostgreSQL only.
select at, commits, written, wal, own_statements, own_wal, own_written from {schema}.load_sample
 where at > coalesce(%(now)s::timestamptz, clock_timestamp()) - interval '10 minutes' order by at
