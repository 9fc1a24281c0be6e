-- ready, scheduled -> scheduled at another time. Lock: the waiting rows. Index: ready_id, scheduled_pkey. Differs: none.
create function {schema}.run_at_3(p_ids bigint[], p_at timestamptz, p_by text, p_reason text, p_now timestamptz)
returns setof bigint
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    perform note_jobs_1('run_at', p_ids, p_by, p_reason, v_now);
    return query
    with gone as (
        delete from ready where id = any(p_ids)
        returning id, queue, tenant, task, priority, run, failed, lost, interrupted, snoozed, expires_at
    ), gone_scheduled as (
        delete from scheduled where id = any(p_ids)
        returning id, queue, tenant, task, priority, run, failed, lost, interrupted, snoozed, expires_at
    )
    insert into scheduled (id, run_at, queue, tenant, task, priority, run, failed, lost, interrupted, snoozed, expires_at)
    select g.id, p_at, g.queue, g.tenant, g.task, g.priority, g.run, g.failed, g.lost, g.interrupted, g.snoozed, g.expires_at
      from (select * from gone union all select * from gone_scheduled) g
    returning id;
    perform ring_1();
end
$$;
