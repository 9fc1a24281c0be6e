-- The stored arguments. Lock, index: arguments_1. Differs: none.
select id, args from {schema}.arguments_1(%(ids)s::bigint[])
