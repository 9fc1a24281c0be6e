-- Delete one chunk of old final jobs. Lock, index: retain_2. Differs: none.
select {schema}.retain_2(
    %(keys)s::bigint[], %(keep)s::float8[], %(default)s::float8, %(dead_keys)s::bigint[], %(dead_keep)s::float8[],
    %(dead_default)s::float8, %(notice)s::float8, %(most)s::int, %(now)s::timestamptz)
