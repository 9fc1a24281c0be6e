-- scheduled -> ready at the tail; a job that is ready keeps its place. Answers both.
-- Lock: the scheduled rows. Index: scheduled_pkey, ready_id. Differs: none.
create function {schema}.run_now_3(p_ids bigint[], p_by text, p_reason text, p_now timestamptz) returns setof bigint
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    with gone as (
        delete from scheduled where id = any(p_ids)
        returning id, run_at, queue, tenant, task, priority, run, failed, lost, interrupted, snoozed, expires_at
    ), sorted as (
        select * from gone order by id
    )
    insert into ready (queue, tenant, priority, pos, id, task, ready_at, run, failed, lost, interrupted, snoozed, expires_at)
    select s.queue, s.tenant, s.priority, nextval('pos'), s.id, s.task, v_now, s.run, s.failed, s.lost, s.interrupted, s.snoozed,
           s.expires_at
      from sorted s;
    if found then
        perform ring_1();
    end if;
    perform note_jobs_1('run_now', p_ids, p_by, p_reason, v_now);
    return query select r.id from ready r where r.id = any(p_ids);
end
$$;
