-- Delete dead letters. Lock, index: purge_3. Differs: none.
select told.id from {schema}.purge_3(
    %(ids)s::bigint[], %(by)s::text, %(reason)s::text, %(now)s::timestamptz) as told (id)
