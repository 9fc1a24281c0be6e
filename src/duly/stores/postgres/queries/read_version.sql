-- The highest migration applied. Lock: none. Index: schema_version_pkey. Differs: none.
select coalesce(max(version), 0) from {schema}.schema_version
