-- Another due time. Lock, index: run_at_1. Differs: none.
select told.id from {schema}.run_at_1(
    %(ids)s::bigint[], %(at)s::timestamptz, %(by)s::text, %(reason)s::text, %(now)s::timestamptz) as told (id)
