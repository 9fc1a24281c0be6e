-- Ordering keys with work. Lock, index: keys_1. Differs: none.
select queue, tenant, key, head, state, waiting, since, paused from {schema}.keys_1(%(queue)s::text, %(most)s::int)
