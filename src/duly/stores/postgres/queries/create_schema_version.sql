-- Where applied migrations are noted. Lock: catalogue. Index: none. Differs: none.
create table if not exists {schema}.schema_version (
    version int primary key, name text not null, checksum text not null, applied_at timestamptz not null)
