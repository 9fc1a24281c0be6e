-- Another priority for waiting jobs: a ready one goes to the tail of its new lane, the others keep where they wait.
-- Rows are moved, never updated (claim_lane_1, promote_1). Lock: the waiting rows. Index: ready_id, scheduled_pkey,
-- blocked_pkey. Differs: none.
create function {schema}.reprioritise_3(p_ids bigint[], p_priority int, p_by text, p_reason text, p_now timestamptz)
returns setof bigint
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
begin
    perform note_jobs_1('reprioritise', p_ids, p_by, p_reason, coalesce(p_now, clock_timestamp()));
    return query
    with gone as (
        delete from ready where id = any(p_ids)
        returning id, queue, tenant, task, ready_at, run, failed, lost, interrupted, snoozed, expires_at, limited_at
    ), sorted as (
        select * from gone order by id
    )
    insert into ready (queue, tenant, priority, pos, id, task, ready_at, run, failed, lost, interrupted, snoozed, expires_at,
                       limited_at)
    select s.queue, s.tenant, p_priority, nextval('pos'), s.id, s.task, s.ready_at, s.run, s.failed, s.lost, s.interrupted, s.snoozed,
           s.expires_at, s.limited_at
      from sorted s
    returning id;
    return query
    with gone as (
        delete from scheduled where id = any(p_ids)
        returning id, run_at, queue, tenant, task, run, failed, lost, interrupted, snoozed, expires_at
    )
    insert into scheduled (id, run_at, queue, tenant, task, priority, run, failed, lost, interrupted, snoozed, expires_at)
    select g.id, g.run_at, g.queue, g.tenant, g.task, p_priority, g.run, g.failed, g.lost, g.interrupted, g.snoozed, g.expires_at
      from gone g
    returning id;
    return query
    with gone as (
        delete from blocked where id = any(p_ids)
        returning id, task, queue, tenant, pos, since, cause, gate, run, failed, lost, interrupted, snoozed, expires_at
    )
    insert into blocked (id, task, queue, tenant, pos, since, cause, gate, priority, run, failed, lost, interrupted, snoozed,
                         expires_at)
    select g.id, g.task, g.queue, g.tenant, g.pos, g.since, g.cause, g.gate, p_priority, g.run, g.failed, g.lost, g.interrupted, g.snoozed,
           g.expires_at
      from gone g
    returning id;
end
$$;
