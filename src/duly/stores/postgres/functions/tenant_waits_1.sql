-- What tenants have ready in their lanes of fair queues: how many jobs, counted to one more than 1,000, and since when the one
-- that is ready longest, of the heads of at most 50 priorities, is so; of at most p_most lanes.
-- Lock: none. Index: ready_pkey, a few probes a lane; job_pkey. Differs: SQLite's loop is Python.
create function {schema}.tenant_waits_1(p_tenant text, p_most int, p_now timestamptz)
returns table (queue text, tenant text, ready int, oldest float8)
language plpgsql stable security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_wanted bigint := case when p_tenant is not null then key_of_1(p_tenant) end;
    v_left int := p_most;
    v_queue record;
    v_lane record;
    v_after bigint;
    v_oldest timestamptz;
begin
    for v_queue in select q.name, q.key from queue q where q.fair order by q.name loop
        v_after := coalesce(v_wanted - 1, -9223372036854775808);
        while v_left > 0 loop
            select r.tenant, r.priority, r.ready_at, r.id into v_lane from ready r
             where r.queue = v_queue.key and r.tenant > v_after order by r.queue, r.tenant, r.priority, r.pos limit 1;
            exit when v_lane.tenant is null or v_lane.tenant <> coalesce(v_wanted, v_lane.tenant);
            v_after := v_lane.tenant;
            if v_lane.tenant <> 0 then
                queue := v_queue.name;
                tenant := (select j.tenant from job j where j.id = v_lane.id);
                select count(*) into tenant_waits_1.ready from (
                    select 1 from ready r where r.queue = v_queue.key and r.tenant = v_after limit 1001) x;
                v_oldest := null;
                for v_try in 1 .. 50 loop
                    exit when v_lane.ready_at is null;
                    v_oldest := least(v_oldest, v_lane.ready_at);
                    select r.tenant, r.priority, r.ready_at, r.id into v_lane from ready r
                     where r.queue = v_queue.key and r.tenant = v_after and r.priority > v_lane.priority
                     order by r.priority, r.pos limit 1;
                end loop;
                oldest := extract(epoch from v_now - v_oldest);
                v_left := v_left - 1;
                return next;
            end if;
            exit when v_wanted is not null;
        end loop;
    end loop;
end
$$;
