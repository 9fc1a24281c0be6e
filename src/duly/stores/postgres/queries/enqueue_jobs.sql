-- Store jobs; (id, run_at) in the order asked. Lock, index: enqueue_4. Differs: none.
select id, run_at from {schema}.enqueue_4(
    p_queues => %(queues)s::text[], p_queue_keys => %(queue_keys)s::bigint[], p_suspect_keys => %(suspect_keys)s::bigint[],
    p_tasks => %(tasks)s::text[], p_task_keys => %(task_keys)s::bigint[], p_args => %(args)s::bytea[],
    p_priorities => %(priorities)s::int[], p_delays => %(delays)s::float8[], p_run_at => %(run_at)s::timestamptz[],
    p_expires => %(expires)s::float8[], p_timeouts => %(timeouts)s::float8[], p_attempts => %(attempts)s::int[],
    p_tenants => %(tenants)s::text[], p_tags => %(tags)s::text[], p_correlations => %(correlations)s::text[],
    p_triggers => %(triggers)s::text[],
    p_holder_incarnations => %(holder_incarnations)s::bigint[], p_holder_ids => %(holder_ids)s::bigint[],
    p_holder_runs => %(holder_runs)s::int[], p_own => %(own)s, p_now => %(now)s::timestamptz)
