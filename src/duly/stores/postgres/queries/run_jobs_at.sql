-- Another due time. Lock, index: run_at_3. Differs: none.
select told.id from {schema}.run_at_3(
    %(ids)s::bigint[], %(at)s::timestamptz, %(by)s::text, %(reason)s::text, %(now)s::timestamptz) as told (id)
