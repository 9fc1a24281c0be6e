-- What duly's relations used lately, oldest first. Lock, index: uses_1. Differs: SQLite samples its file.
select at, used from {schema}.uses_1(%(within)s::float8, %(now)s::timestamptz)
