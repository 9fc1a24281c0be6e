-- Encrypted payloads of a part. Lock, index: sealed_1. Differs: SQLite has a statement for each part.
select id, name, queue, task, tenant, data
  from {schema}.sealed_1(%(part)s::text, %(prefix)s::bytea, %(after)s::bigint, %(after_name)s::text, %(most)s::int)
