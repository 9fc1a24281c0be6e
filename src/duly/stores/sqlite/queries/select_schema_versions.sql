-- What was applied, for comparison with what is shipped. Lock: none.
select version, name, checksum from {prefix}_schema_version order by version
