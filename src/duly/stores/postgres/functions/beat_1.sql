-- Counts one heartbeat for each incarnation that is still there; no clock test: the row is the lease.
-- Lock: the worker rows, in the order given (callers sort). Index: worker_pkey. Differs: none.
create function {schema}.beat_1(p_incarnations bigint[], p_now timestamptz) returns setof bigint
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    v_incarnation bigint;
begin
    foreach v_incarnation in array p_incarnations loop
        update worker set beat = beat + 1, beat_at = coalesce(p_now, clock_timestamp()) where incarnation = v_incarnation;
        if found then
            return next v_incarnation;
        end if;
    end loop;
end
$$;
