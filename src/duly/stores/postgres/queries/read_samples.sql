-- Samples of the last minutes, oldest first. Lock: none. Index: sample_pkey. Differs: none.
select queue, at, ready, running, ended from {schema}.sample
 where at > coalesce(%(now)s::timestamptz, clock_timestamp()) - interval '5 minutes' order by queue, at
