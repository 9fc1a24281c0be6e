-- Which of these were asked to end. Lock, index: draining_1. Differs: none.
select * from {schema}.draining_1(%(incarnations)s::bigint[])
