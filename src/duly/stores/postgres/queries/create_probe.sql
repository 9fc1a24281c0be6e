-- The table of the bench's bare commits. Lock: none that others wait for. Index: its key. Differs: none.
create table {schema}.probe (id bigint generated always as identity primary key, payload bytea not null)
