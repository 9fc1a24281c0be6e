-- Store jobs with keys, follow-ups and the like; (id, run_at, outcome, place). Lock, index: enqueue_3. Differs: none.
select id, run_at, outcome, place from {schema}.enqueue_3(
    p_specs => %(specs)s::jsonb, p_args => %(args)s::bytea[], p_holder_incarnations => %(holder_incarnations)s::bigint[],
    p_holder_ids => %(holder_ids)s::bigint[], p_holder_runs => %(holder_runs)s::int[], p_own => %(own)s,
    p_now => %(now)s::timestamptz)
