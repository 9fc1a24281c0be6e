-- Another priority. Lock, index: reprioritise_2. Differs: none.
select told.id from {schema}.reprioritise_2(
    %(ids)s::bigint[], %(priority)s::int, %(by)s::text, %(reason)s::text, %(now)s::timestamptz) as told (id)
