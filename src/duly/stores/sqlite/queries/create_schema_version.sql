-- The first table of all. Lock: the write lock.
create table {prefix}_schema_version (
    version integer primary key,
    name text not null,
    checksum text not null,
    applied_at integer not null
) strict
