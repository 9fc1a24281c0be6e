-- Note a migration as applied. Lock: none. Index: none. Differs: none.
insert into {schema}.schema_version (version, name, checksum, applied_at)
values (%(version)s::int, %(name)s::text, %(checksum)s::text, clock_timestamp())
