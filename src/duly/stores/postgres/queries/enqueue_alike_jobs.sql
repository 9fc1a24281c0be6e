-- Store jobs that differ in their arguments only; their ids in the order asked. Lock, index: enqueue_alike_2. Differs: none.
select {schema}.enqueue_alike_2(
    p_queue => %(queue)s::text, p_queue_key => %(queue_key)s::bigint, p_suspect_key => %(suspect_key)s::bigint,
    p_task => %(task)s::text, p_task_key => %(task_key)s::bigint, p_args => %(args)s::bytea[], p_priority => %(priority)s::int,
    p_timeout => %(timeout)s::float8, p_attempts => %(attempts)s::int, p_tenant => %(tenant)s::text,
    p_correlation => %(correlation)s::text, p_trigger => %(trigger)s::text, p_now => %(now)s::timestamptz)
