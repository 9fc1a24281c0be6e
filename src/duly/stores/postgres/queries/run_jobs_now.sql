-- scheduled -> ready. Lock, index: run_now_2. Differs: none.
select told.id from {schema}.run_now_2(
    %(ids)s::bigint[], %(by)s::text, %(reason)s::text, %(now)s::timestamptz) as told (id)
