-- One round trip of a worker: applies ends, claims more, tells wishes. Claims nothing when the worker row is gone. Ends come
-- apart: p_done_* for apply_completions_2 (only with p_own), the others for apply_ends_2.
-- Lock: own worker row FOR KEY SHARE, then claimed, then ready rows FOR UPDATE SKIP LOCKED. Index: worker_pkey and those
-- of apply_ends_2 and claim_lanes_2. Differs: SQLite runs the parts one after the other in its one writer.
create function {schema}.exchange_2(
    p_incarnation bigint, p_done_ids bigint[], p_done_elapsed float8[], p_done_results bytea[],
    p_ids bigint[], p_runs int[], p_events text[], p_states text[], p_failed int[], p_lost int[], p_interrupted int[],
    p_snoozed int[], p_delays float8[], p_results bytea[], p_reasons text[], p_notes text[], p_error_types text[],
    p_error_messages text[], p_tracebacks text[], p_fingerprints text[], p_elapsed float8[],
    p_cursor_ids bigint[], p_cursor_runs int[], p_cursor_names text[], p_cursor_positions bigint[],
    p_queues text[], p_lanes bigint[], p_caps int[], p_sweeps boolean[], p_most int, p_unparked bigint[],
    p_jump_lanes bigint[], p_jump_from int[], p_jump_pos bigint[], p_jump_to bigint[], p_own boolean, p_now timestamptz
) returns setof {schema}.exchanged_2
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_known jsonb;
    v_stale boolean;
    v_paused text[];
    v_paused_tasks bigint[];
    v_left int := p_most;
    v_wished boolean;
    v_row {schema}.exchanged_2;
begin
    if p_own then
        perform require_read_committed_1();
        select w.known || '{}', w.progress_at < v_now - w.heartbeat into v_known, v_stale
          from worker w where w.incarnation = p_incarnation for key share;
        if v_stale then
            update worker set progress_at = v_now where incarnation = p_incarnation;
        end if;
    end if;
    -- Wishes are few: they stand only for jobs that were running when a cancel came.
    v_wished := p_own and exists (select 1 from wish);
    if cardinality(p_done_ids) > 0 then
        return query
        select 'lost', null::int, a.id, 1, null::int, null::bigint, null::int[], null::int, null::interval, null::timestamptz,
               null, null, null::text[], null, null::bytea, null::smallint, null
          from apply_completions_2(p_incarnation, p_done_ids, p_done_elapsed, p_done_results, v_wished, v_now) as a (id);
    end if;
    if cardinality(p_ids) > 0 then
        if cardinality(p_cursor_ids) > 0 then
            perform keep_cursors_1(p_incarnation, p_cursor_ids, p_cursor_runs, p_cursor_names, p_cursor_positions);
        end if;
        return query
        select 'lost', null::int, a.id, a.run, null::int, null::bigint, null::int[], null::int, null::interval,
               null::timestamptz, null, null, null::text[], null, null::bytea, null::smallint, null
          from apply_ends_2(array_fill(p_incarnation, array[cardinality(p_ids)]), p_ids, p_runs, p_events, p_states, p_failed,
                            p_lost, p_interrupted, p_snoozed, p_delays, p_results, p_reasons, p_notes, p_error_types,
                            p_error_messages, p_tracebacks, p_fingerprints, p_elapsed, p_own, v_now) a;
    end if;
    if v_wished then
        return query
        select 'wish', null::int, w.id, null::int, null::int, null::bigint, null::int[], null::int, null::interval,
               null::timestamptz, null, null, null::text[], null, null::bytea, null::smallint, null
          from wish w cross join lateral (
            select 1 from claimed c where c.incarnation = p_incarnation and c.id = w.id offset 0) held;
    end if;
    if v_known is null then
        return;
    end if;
    if v_left > 0 then
        select array_agg(p.target), array_agg(p.key) filter (where p.target like 'task:%') into v_paused, v_paused_tasks
          from pause p where p.until is null or p.until > v_now;
        if cardinality(p_unparked) > 0 then
            for v_row in select * from claim_parked_2(p_incarnation, v_known, p_queues, p_lanes, p_caps, v_paused,
                                                      coalesce(v_paused_tasks, '{}'), v_left, p_unparked, v_now) loop
                return next v_row;
                v_left := v_left - 1;
                p_caps[v_row.place] := p_caps[v_row.place] - 1;
            end loop;
            v_row.kind := 'now';
            v_row.enqueued_at := v_now;
            return next v_row;
        end if;
        return query
        select * from claim_lanes_2(p_incarnation, v_known, v_paused, coalesce(v_paused_tasks, '{}'), p_queues, p_lanes, p_caps,
                                    p_sweeps, v_left, p_jump_lanes, p_jump_from, p_jump_pos, p_jump_to, v_now);
    end if;
end
$$;
