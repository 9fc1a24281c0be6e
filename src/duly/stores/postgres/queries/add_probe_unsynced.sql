-- One bare row whose commit does not wait for the disk. Lock: none. Index: its key. Differs: PostgreSQL only, where
-- SQLite has a setting of the connection.
with off as materialized (select set_config('synchronous_commit', 'off', true))
insert into {schema}.probe (payload) select %(payload)s from off
