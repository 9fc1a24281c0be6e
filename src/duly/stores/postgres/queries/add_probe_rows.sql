-- Many bare rows in one commit. Lock: none. Index: its key. Differs: PostgreSQL only, SQLite takes them singly.
insert into {schema}.probe (payload) select unnest(%(payloads)s::bytea[])
