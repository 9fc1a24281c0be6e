-- One migration of a schema at a time. Lock: advisory, until the transaction ends. Index: none. Differs: SQLite locks the file.
select pg_advisory_xact_lock(hashtextextended('duly migrate ' || %(schema)s::text, 0))
