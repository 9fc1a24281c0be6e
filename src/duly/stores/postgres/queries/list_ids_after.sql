-- Ids of jobs above an edge, oldest first, by one index (source). Lock, index: ids_after_1. Differs: one file per source in SQLite.
select id from {schema}.ids_after_1(%(source)s::text, %(value)s::text, %(edge)s::bigint, %(most)s::int) as id
