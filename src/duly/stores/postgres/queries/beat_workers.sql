-- Count one heartbeat each. Lock, index: beat_1. Differs: none.
select told.incarnation from {schema}.beat_1(%(incarnations)s::bigint[], %(now)s::timestamptz) as told (incarnation)
