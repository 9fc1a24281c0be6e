-- As sweep_3, with the names of what is due beside it (due_beside_1): an idle worker need not ask for each of those.
-- Lock, index: sweep_3, due_beside_1. Differs: none.
create function {schema}.sweep_4(p_unknown_after float8, p_poison int, p_grace float8, p_lag float8, p_now timestamptz)
returns table (
    ran boolean, expired int, orphans int, overdue int, abandoned int, unparked int, shed int, due text[]
)
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    select s.ran, s.expired, s.orphans, s.overdue, s.abandoned, s.unparked, s.shed
      into ran, expired, orphans, overdue, abandoned, unparked, shed
      from sweep_3(p_unknown_after, p_poison, p_grace, v_now) s;
    due := case when ran then due_beside_1(p_lag, v_now) end;
    return next;
end
$$;
