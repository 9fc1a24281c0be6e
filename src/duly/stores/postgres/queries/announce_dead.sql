-- Mark dead letters that will be purged soon. Lock, index: announce_dead_2. Differs: none.
select queue, letters, purged_from from {schema}.announce_dead_2(
    %(keys)s::bigint[], %(keep)s::float8[], %(default)s::float8, %(ahead)s::float8, %(notice)s::float8, %(now)s::timestamptz)
