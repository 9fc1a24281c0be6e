-- Sequences that stand below numbers already given out. Lock: none. Index: job_pkey. Differs: PostgreSQL only.
select name, behind from {schema}.positions_behind_1()
