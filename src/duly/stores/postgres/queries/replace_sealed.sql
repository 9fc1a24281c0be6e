-- Put payloads under another key. Lock, index: reseal_1. Differs: SQLite has a statement for each part.
select {schema}.reseal_1(%(part)s::text, %(ids)s::bigint[], %(names)s::text[], %(old)s::bytea[], %(new)s::bytea[])
