-- Cancels in a caller's transaction: waiting jobs become cancelled, for running ones the wish is written; both become true
-- with the commit. Answers (id, running). No attempt waits for it: one that ends before the commit has not been cancelled,
-- and the wish counts from its next claim on.
-- Lock: as cancel_waiting_1. Index: the tables' id indexes, wish_pkey. Differs: none.
create function {schema}.cancel_2(p_ids bigint[], p_by text, p_reason text, p_now timestamptz)
returns table (id bigint, running boolean)
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_open bigint[] := p_ids;
    v_some bigint[];
begin
    perform note_jobs_1('cancel', p_ids, p_by, p_reason, v_now);
    -- More than one look: a job may come back to wait in between.
    for v_try in 1 .. 3 loop
        v_some := cancel_waiting_1(v_open, p_by, p_reason, v_now);
        return query select s, false from unnest(v_some) s;
        v_open := array(select o from unnest(v_open) o where o <> all(v_some));
        v_some := array(select c.id from unnest(v_open) as u (id) cross join lateral (
            select c.id from claimed c where c.id = u.id offset 0) c);
        insert into wish (id, verb, by, reason, at)
        select s, 'cancel', p_by, p_reason, v_now from unnest(v_some) s
            on conflict (id) do nothing;
        return query select s, true from unnest(v_some) s;
        v_open := array(select o from unnest(v_open) o where o <> all(v_some));
        exit when cardinality(v_open) = 0;
    end loop;
end
$$;
