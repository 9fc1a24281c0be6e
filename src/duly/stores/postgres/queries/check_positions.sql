-- Sequences that stand below numbers already given out, and the highest of these.
-- Lock: none. Index: job_pkey. Differs: PostgreSQL only.
select name, highest from {schema}.positions_behind_1()
