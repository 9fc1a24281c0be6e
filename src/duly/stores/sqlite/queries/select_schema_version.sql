-- The version of the tables in the file. Lock: none.
select max(version) from {prefix}_schema_version
