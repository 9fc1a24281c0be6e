-- The queues that have become late since anybody asked, or are in time again, once a second for all who ask. Late: the job that
-- is ready longest, of the heads of at most 200 tenants and priorities, has waited longer than the queue's wait_target.
-- Lock: advisory try-lock of the transaction, then rows of `queue`. Index: sweep_pkey, ready_pkey; a row per declared queue.
-- Differs: SQLite's is Python.
create function {schema}.crossings_1(p_now timestamptz)
returns table (queue text, late boolean, wait_target float8, oldest float8)
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_began timestamptz := clock_timestamp();
    v_queue record;
    v_head record;
    v_oldest timestamptz;
begin
    perform require_read_committed_1();
    if not exists (select 1 from queue q where q.wait_target is not null or q.late_since is not null)
        or not sweep_turn_1('crossings', v_now, 1) then
        return;
    end if;
    for v_queue in
        select q.name, q.key, q.wait_target, q.late_since from queue q
         where q.wait_target is not null or q.late_since is not null order by q.name
    loop
        v_oldest := null;
        select r.tenant, r.priority, r.ready_at into v_head from ready r where r.queue = v_queue.key
         order by r.queue, r.tenant, r.priority, r.pos limit 1;
        for v_try in 1 .. 200 loop
            exit when v_head.ready_at is null;
            v_oldest := least(v_oldest, v_head.ready_at);
            select r.tenant, r.priority, r.ready_at into v_head from ready r
             where r.queue = v_queue.key and (r.tenant, r.priority) > (v_head.tenant, v_head.priority)
             order by r.tenant, r.priority, r.pos limit 1;
        end loop;
        queue := v_queue.name;
        late := coalesce(v_oldest < v_now - v_queue.wait_target, false);
        if late <> (v_queue.late_since is not null) then
            update queue q set late_since = case when late then v_now end where q.name = v_queue.name;
            wait_target := extract(epoch from v_queue.wait_target);
            oldest := extract(epoch from v_now - v_oldest);
            return next;
        end if;
    end loop;
    update sweep set cost = least(clock_timestamp() - v_began, interval '3 seconds') where name = 'crossings';
end
$$;
