-- Stores jobs without keys and the like, with their triggers: ready, or scheduled when due later. Answers (id, run_at) in the order
-- asked; no row at all when one of the holders is no longer live. Writes only, so that it never fails by itself under any isolation
-- level of a caller.
-- Lock: with p_own, the holder's claimed row FOR KEY SHARE; else none. Index: claimed_id.
-- Differs: SQLite takes ids from its sequence row.
create function {schema}.enqueue_4(
    p_queues text[], p_queue_keys bigint[], p_suspect_keys bigint[], p_tasks text[], p_task_keys bigint[], p_args bytea[],
    p_priorities int[], p_delays float8[], p_run_at timestamptz[], p_expires float8[], p_timeouts float8[],
    p_attempts int[], p_tenants text[], p_tags text[], p_correlations text[], p_triggers text[],
    p_holder_incarnations bigint[], p_holder_ids bigint[], p_holder_runs int[], p_own boolean, p_now timestamptz
) returns table (id bigint, run_at timestamptz)
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_live int;
begin
    if cardinality(p_holder_ids) > 0 then
        if p_own then
            perform require_read_committed_1();
            perform 1 from unnest(p_holder_incarnations, p_holder_ids, p_holder_runs) as h (incarnation, id, run)
              cross join lateral (
                select 1 from claimed c where c.incarnation = h.incarnation and c.id = h.id and c.run = h.run for key share
              ) held;
        end if;
        select count(*) into v_live
          from unnest(p_holder_incarnations, p_holder_ids, p_holder_runs) as h (incarnation, id, run)
         cross join lateral (
            select 1 from claimed c where c.incarnation = h.incarnation and c.id = h.id and c.run = h.run offset 0
         ) held;
        if v_live < cardinality(p_holder_ids) then
            return;
        end if;
    end if;
    if p_tags is null and p_delays is null and p_run_at is null and p_expires is null then
        -- The usual jobs, ready at once, need half the tables.
        return query
        with asked as materialized (
            select nextval('pos') as id, u.*
              from unnest(p_queues, p_queue_keys, p_suspect_keys, p_tasks, p_task_keys, p_args, p_priorities, p_timeouts,
                          p_attempts, p_tenants, p_correlations, p_triggers)
                as u (queue, queue_key, suspect_key, task, task_key, args, priority, timeout, attempts, tenant, correlation_id,
                      trigger)
        ), stored as (
            insert into job (id, queue_key, suspect_key, task_key, enqueued_at, timeout, priority, attempts, queue, task, tenant,
                             correlation_id, trigger, args)
            select a.id, a.queue_key, a.suspect_key, a.task_key, v_now, a.timeout * interval '1 second', a.priority,
                   a.attempts, a.queue, a.task, coalesce(a.tenant, ''), a.correlation_id, a.trigger, a.args
              from asked a
        ), due as (
            insert into ready (queue, priority, pos, id, task, ready_at)
            select a.queue_key, a.priority, a.id, a.id, a.task_key, v_now from asked a
        )
        select a.id, null::timestamptz from asked a;
        perform ring_1();
        return;
    end if;
    return query
    with asked as materialized (
        select nextval('pos') as id, case when d.due > v_now then d.due end as due,
               case when u.expires is not null
                    then least(coalesce(greatest(d.due, v_now), v_now) + u.expires * interval '1 second', '9999-01-01Z')
               end as expires_at, u.*
          from unnest(p_queues, p_queue_keys, p_suspect_keys, p_tasks, p_task_keys, p_args, p_priorities, p_delays, p_run_at,
                      p_expires, p_timeouts, p_attempts, p_tenants, p_tags, p_correlations, p_triggers) with ordinality
            as u (queue, queue_key, suspect_key, task, task_key, args, priority, delay, run_at, expires, timeout, attempts,
                  tenant, tags, correlation_id, trigger, place)
         cross join lateral (
            select case when u.run_at is not null or u.delay is not null
                        then least(coalesce(u.run_at, v_now + u.delay * interval '1 second'), '9999-01-01Z') end as due
         ) d
    ), stored as (
        insert into job (id, queue_key, suspect_key, task_key, enqueued_at, expires_at, timeout, priority, attempts,
                         queue, task, tenant, correlation_id, trigger, tags, args)
        select a.id, a.queue_key, a.suspect_key, a.task_key, v_now, a.expires_at,
               a.timeout * interval '1 second', coalesce(a.priority, 100), a.attempts, a.queue, a.task,
               coalesce(a.tenant, ''), a.correlation_id, a.trigger, string_to_array(a.tags, E'\n'), a.args
          from asked a
    ), tagged as (
        insert into job_tag (tag, id)
        select distinct t.tag, a.id from asked a cross join lateral unnest(string_to_array(a.tags, E'\n')) as t (tag)
         where a.tags is not null
    ), due as (
        insert into ready (queue, priority, pos, id, task, ready_at, expires_at)
        select a.queue_key, coalesce(a.priority, 100), a.id, a.id, a.task_key, v_now, a.expires_at
          from asked a where a.due is null
    ), later as (
        insert into scheduled (id, run_at, queue, task, priority, expires_at)
        select a.id, a.due, a.queue_key, a.task_key, coalesce(a.priority, 100), a.expires_at
          from asked a where a.due is not null
    )
    select a.id, a.due from asked a order by a.place;
    perform ring_1();
end
$$;
