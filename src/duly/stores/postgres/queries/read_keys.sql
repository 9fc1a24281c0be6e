-- Ordering keys with work. Lock, index: keys_2. Differs: none.
select queue, tenant, key, head, state, waiting, since, paused from {schema}.keys_2(%(queue)s::text, %(most)s::int)
