-- The database's clock. Lock: none. Index: none. Differs: SQLite's is the process's.
select clock_timestamp()
