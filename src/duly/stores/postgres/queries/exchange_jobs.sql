-- Apply ends and claim more. Lock, index: exchange_3. Differs: one function call here, several statements in SQLite.
select kind, place, id, run, priority, pos, counts, attempts, timeout, enqueued_at, task, tenant, tags, correlation_id, args,
       extras, trigger, ordering_key
  from {schema}.exchange_3(
    p_incarnation => %(incarnation)s::bigint, p_done_ids => %(done_ids)s::bigint[],
    p_done_elapsed => %(done_elapsed)s::float8[], p_done_results => %(done_results)s::bytea[],
    p_ids => %(ids)s::bigint[], p_runs => %(runs)s::int[], p_events => %(events)s::text[], p_states => %(states)s::text[],
    p_failed => %(failed)s::int[], p_lost => %(lost)s::int[], p_interrupted => %(interrupted)s::int[],
    p_snoozed => %(snoozed)s::int[], p_delays => %(delays)s::float8[], p_results => %(results)s::bytea[],
    p_reasons => %(reasons)s::text[], p_notes => %(notes)s::text[], p_error_types => %(error_types)s::text[],
    p_error_messages => %(error_messages)s::text[], p_tracebacks => %(tracebacks)s::text[],
    p_fingerprints => %(fingerprints)s::text[], p_elapsed => %(elapsed)s::float8[],
    p_cursor_ids => %(cursor_ids)s::bigint[], p_cursor_runs => %(cursor_runs)s::int[],
    p_cursor_names => %(cursor_names)s::text[], p_cursor_positions => %(cursor_positions)s::bigint[],
    p_queues => %(queues)s::text[], p_lanes => %(lanes)s::bigint[], p_caps => %(caps)s::int[], p_sweeps => %(sweeps)s::boolean[],
    p_most => %(most)s::int, p_unparked => %(unparked)s::bigint[], p_jump_lanes => %(jump_lanes)s::bigint[],
    p_jump_from => %(jump_from)s::int[], p_jump_pos => %(jump_pos)s::bigint[], p_jump_to => %(jump_to)s::bigint[],
    p_chain => %(chain)s::int,
    p_fair => %(fair)s::boolean[], p_reserved => %(reserved)s::int[], p_last => %(last)s::bigint[], p_rest => %(rest)s::int[],
    p_given => %(given)s::bigint[], p_asked => %(asked)s::int[], p_aged => %(aged)s::int[], p_own => %(own)s, p_now => %(now)s::timestamptz)
