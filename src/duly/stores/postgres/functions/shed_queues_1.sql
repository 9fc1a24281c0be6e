-- ready -> shed for at most so many jobs, queue by queue in this order; how many went.
-- Lock, index: those of shed_queue_1. Differs: SQLite does it in select_least_urgent.
create function {schema}.shed_queues_1(p_queues bigint[], p_most int, p_reason text, p_now timestamptz) returns int
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    v_queue bigint;
    v_shed int := 0;
begin
    perform require_read_committed_1();
    foreach v_queue in array p_queues loop
        exit when v_shed >= p_most;
        v_shed := v_shed + shed_queue_1(v_queue, p_most - v_shed, p_reason, coalesce(p_now, clock_timestamp()));
    end loop;
    return v_shed;
end
$$;
