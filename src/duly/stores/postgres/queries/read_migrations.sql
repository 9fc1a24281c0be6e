-- Applied migrations with their checksums. Lock: none. Index: none. Differs: none.
select version, checksum from {schema}.schema_version order by version
