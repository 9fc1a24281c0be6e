-- Which of these were asked to end. Lock, index: draining_1. Differs: none.
select told.incarnation from {schema}.draining_1(%(incarnations)s::bigint[]) as told (incarnation)
