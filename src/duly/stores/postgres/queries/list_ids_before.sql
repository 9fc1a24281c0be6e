-- Ids of jobs below an edge, newest first, by one index (source). Lock, index: ids_before_1. Differs: one file per source in SQLite.
select id from {schema}.ids_before_1(%(source)s::text, %(value)s::text, %(edge)s::bigint, %(most)s::int) as id
