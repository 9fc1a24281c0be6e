-- Another priority. Lock, index: reprioritise_3. Differs: none.
select told.id from {schema}.reprioritise_3(
    %(ids)s::bigint[], %(priority)s::int, %(by)s::text, %(reason)s::text, %(now)s::timestamptz) as told (id)
