-- Applies ends of attempts, each fenced by (incarnation, job, run); answers the pairs that were not live, but for those
-- whose same end an earlier call applied (with p_own). A wished cancel turns ready and scheduled into cancelled, and gives its
-- reason to what the worker cancelled itself. The caller has set the planner.
-- Lock: the claimed rows FOR UPDATE, in the order given (callers sort by incarnation, id). Index: those of
-- apply_any_ends_3, attempt_pkey, finished_pkey. Differs: SQLite needs no lock.
create function {schema}.apply_ends_3(
    p_incarnations bigint[], p_ids bigint[], p_runs int[], p_events text[], p_states text[],
    p_failed int[], p_lost int[], p_interrupted int[], p_snoozed int[], p_delays float8[], p_results bytea[],
    p_reasons text[], p_notes text[], p_error_types text[], p_error_messages text[], p_tracebacks text[],
    p_fingerprints text[], p_elapsed float8[], p_own boolean, v_now timestamptz
) returns table (id bigint, run int)
language plpgsql as $$
#variable_conflict use_column
declare
    v_applied bigint;
begin
    v_applied := apply_any_ends_3(p_incarnations, p_ids, p_runs, p_events, p_states, p_failed, p_lost, p_interrupted, p_snoozed,
                                  p_delays, p_results, p_reasons, p_notes, p_error_types, p_error_messages, p_tracebacks,
                                  p_fingerprints, p_elapsed, p_own, v_now);
    if 'ready' = any(p_states) then
        perform ring_1();
    end if;
    if v_applied < cardinality(p_ids) then
        return query
        select u.id, u.run from unnest(p_incarnations, p_ids, p_runs, p_events) as u (incarnation, id, run, event)
         where (v_applied = 0 and not p_own)
            -- Not by EXISTS, which the planner may answer from the whole of a table.
            or (select true from attempt a where a.id = u.id and a.run = u.run and a.incarnation = u.incarnation
                   and a.event = u.event) is null
           and (u.event <> 'complete'
                or (select true from finished f where f.id = u.id and f.run = u.run
                       and f.incarnation = u.incarnation and f.status = 'completed') is null);
    end if;
end
$$;
