-- Whether the file has our tables. Lock: none. Differs: only here, the file may be new.
select 1 from sqlite_master where type = 'table' and name = '{prefix}_schema_version'
