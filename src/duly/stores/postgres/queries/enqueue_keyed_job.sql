-- Store one job with tags, a unique key or an ordering key; (id, run_at, outcome, place). Lock, index: enqueue_keyed_1.
-- Differs: none.
select id, run_at, outcome, place from {schema}.enqueue_keyed_1(
    p_queue => %(queue)s::text, p_queue_key => %(queue_key)s::bigint, p_suspect_key => %(suspect_key)s::bigint,
    p_task => %(task)s::text, p_task_key => %(task_key)s::bigint, p_args => %(args)s::bytea, p_priority => %(priority)s::int,
    p_timeout => %(timeout)s::float8, p_attempts => %(attempts)s::int, p_tenant => %(tenant)s::text,
    p_correlation => %(correlation)s::text, p_trigger => %(trigger)s::text, p_tags => %(tags)s::text[],
    p_unique => %(unique)s::bytea, p_live => %(live)s::boolean, p_replace => %(replace)s::boolean,
    p_ordering_key => %(ordering_key)s::text, p_ordering => %(ordering)s::bigint, p_own => %(own)s,
    p_now => %(now)s::timestamptz)
