-- References that nothing uses. Lock, index: unused_blobs_1. Differs: none.
select told.ref from {schema}.unused_blobs_1(%(refs)s::text[]) as told (ref)
