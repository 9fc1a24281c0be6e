-- Final jobs run again. Lock, index: redrive_4. Differs: none.
select told.id from {schema}.redrive_4(
    %(ids)s::bigint[], %(by)s::text, %(reason)s::text, %(priority)s::int, %(now)s::timestamptz) as told (id)
