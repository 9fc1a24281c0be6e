-- Second half of a cancel: whoever ends one of these attempts from now on reads the wish, so that only moves that were under
-- way when it was committed are left: waits a moment for those, and cancels what has come back to wait.
-- Answers (id, running) of those cancelled by now or still running. A user's long transaction around a completion is not
-- waited for: its job counts as running. Lock: claimed rows FOR KEY SHARE SKIP LOCKED, for an instant.
-- Index: claimed_id and those of cancel_waiting_1. Differs: SQLite needs none of it.
create function {schema}.settle_cancel_2(p_ids bigint[], p_by text, p_reason text, p_now timestamptz)
returns table (id bigint, running boolean)
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_open bigint[] := p_ids;
    v_settled bigint[];
begin
    perform require_read_committed_1();
    for v_try in 1 .. 20 loop
        select array_agg(x.id) into v_settled from unnest(v_open) as u (id) cross join lateral (
            select c.id from claimed c where c.id = u.id for key share skip locked) x;
        return query select s, true from unnest(v_settled) s;
        v_open := array(select o from unnest(v_open) o where (o = any(v_settled)) is not true);
        v_settled := cancel_waiting_1(v_open, p_by, p_reason, v_now);
        return query select s, false from unnest(v_settled) s;
        v_open := array(select o from unnest(v_open) o where o <> all(v_settled));
        -- Whoever ended it meanwhile has read the wish, or it has no use for one. One look for both: an end between two would
        -- be in neither.
        v_settled := array(select o from unnest(v_open) o
                            where exists (select 1 from finished f where f.id = o)
                               or exists (select 1 from dead d where d.id = o));
        return query select f.id, false from finished f where f.id = any(v_settled) and f.status = 'cancelled';
        v_open := array(select o from unnest(v_open) o where o <> all(v_settled));
        exit when cardinality(v_open) = 0;
        perform pg_sleep(0.01);
    end loop;
    return query
    select u.id, u.held
      from (select o, exists (select 1 from claimed c where c.id = o) from unnest(v_open) o) as u (id, held)
     where u.held or exists (select 1 from finished f where f.id = u.id and f.status = 'cancelled');
    delete from wish w where w.id = any(p_ids)
       and (exists (select 1 from finished f where f.id = w.id) or exists (select 1 from dead d where d.id = w.id));
end
$$;
