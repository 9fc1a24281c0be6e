-- Store jobs of which some have tags or keys; (id, run_at, outcome, place) in the order asked. Lock, index:
-- enqueue_keyed_many_1. Differs: none.
select id, run_at, outcome, place from {schema}.enqueue_keyed_many_1(
    p_queues => %(queues)s::text[], p_queue_keys => %(queue_keys)s::bigint[], p_suspect_keys => %(suspect_keys)s::bigint[],
    p_tasks => %(tasks)s::text[], p_task_keys => %(task_keys)s::bigint[], p_args => %(args)s::bytea[],
    p_priorities => %(priorities)s::int[], p_timeouts => %(timeouts)s::float8[], p_attempts => %(attempts)s::int[],
    p_tenants => %(tenants)s::text[], p_tags => %(tags)s::text[], p_correlations => %(correlations)s::text[],
    p_triggers => %(triggers)s::text[], p_idempotency => %(idempotency)s::bytea[], p_unique => %(unique)s::bytea[],
    p_live => %(live)s::boolean[], p_replace => %(replace)s::boolean[], p_ordering_keys => %(ordering_keys)s::text[],
    p_orderings => %(orderings)s::bigint[], p_own => %(own)s, p_now => %(now)s::timestamptz)
