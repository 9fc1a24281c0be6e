-- First half of a cancel: waiting jobs become cancelled, for the other live ones the wish is written (both answered). It must
-- be committed before the second half looks again. Lock: as cancel_waiting_1. Index: the tables' id indexes, wish_pkey.
-- Differs: SQLite does both halves in one transaction.
create function {schema}.ask_cancel_3(
    p_ids bigint[], p_by text, p_reason text, p_now timestamptz, out cancelled bigint[], out wished bigint[])
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    perform require_read_committed_1();
    cancelled := cancel_waiting_1(p_ids, p_by, p_reason, v_now);
    wished := array(
        select u.id from unnest(p_ids) as u (id)
         -- Not by EXISTS, which the planner may answer from the whole of a table.
         where coalesce((select true from claimed c where c.id = u.id),
                        (select true from ready r where r.id = u.id limit 1),
                        (select true from scheduled s where s.id = u.id),
                        (select true from blocked b where b.id = u.id), false));
    insert into wish (id, verb, by, reason, at)
    select u.id, 'cancel', p_by, p_reason, v_now from unnest(wished) as u (id)
        on conflict (id) do nothing;
    perform note_jobs_1('cancel', p_ids, p_by, p_reason, v_now);
end
$$;
