-- scheduled -> ready. Lock, index: run_now_3. Differs: none.
select told.id from {schema}.run_now_3(
    %(ids)s::bigint[], %(by)s::text, %(reason)s::text, %(now)s::timestamptz) as told (id)
