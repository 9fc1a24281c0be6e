-- dead, cancelled, skipped -> ready at the tail, in order of id: counters 0, run kept, an old expiry forgotten. A job whose
-- unique key another one has by now stays where it is, and so does one in whose place an edited one runs. One with an ordering key has its old place in it.
-- Lock: the final rows, by id, then keys in sorted order, then key_head rows, waited for: claims hold them for one statement. Index: dead_pkey, finished_pkey, job_pkey, unique_key_pkey,
-- keyed_pkey, queue_key.
-- Differs: none.
create function {schema}.redrive_4(p_ids bigint[], p_by text, p_reason text, p_priority int, p_now timestamptz)
returns setof bigint
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_ids bigint[];
    v_won bigint[] := '{}';
    v_moved bigint[];
    v_job record;
    v_got boolean;
    v_held int := 0;
begin
    perform require_read_committed_1();
    -- From here on only these: what becomes final meanwhile has not been asked for its key.
    v_ids := array(select d.id from unnest(p_ids) as u (id) cross join lateral (
        select d.id from dead d where d.id = u.id and d.successor is null for update) d)
        || array(select f.id from unnest(p_ids) as u (id) cross join lateral (
        select f.id from finished f where f.id = u.id and f.status in ('cancelled', 'skipped') for update) f);
    for v_job in
        select j.id, j.unique_key, j.unique_live, x.run from unnest(v_ids) as u (id)
         cross join lateral (
            select j.id, j.unique_key, j.unique_live from job j where j.id = u.id and j.extras & 4 <> 0 offset 0) j
         cross join lateral (
            select d.run from dead d where d.id = j.id
             union all
            select f.run from finished f where f.id = j.id and f.status in ('cancelled', 'skipped')) x
         order by j.unique_key, j.id
    loop
        -- Somebody's open transaction is not waited for again and again.
        v_got := v_held < 20 and retake_unique_1(v_job.unique_key, v_job.id, v_job.run, v_job.unique_live, v_won, v_now);
        if v_got then
            v_won := v_won || v_job.id;
        else
            v_ids := array_remove(v_ids, v_job.id);
            v_held := v_held + (v_got is null)::int;
        end if;
    end loop;
    perform uncount_batch_1(v_ids);
    with gone as (
        delete from dead where id = any(v_ids) returning id, run
    ), gone_finished as (
        delete from finished where id = any(v_ids) and status in ('cancelled', 'skipped') returning id, run
    ), gone_all as (
        select * from gone union all select * from gone_finished order by id
    ), found as materialized (
        select g.id, g.run, j.queue_key, j.task_key, j.priority, j.ordering,
               case when j.tenant <> '' and (select q.fair from queue q where q.key = j.queue_key) then key_of_1(j.tenant)
                    else 0 end as tenant
          from gone_all g cross join lateral (
            select j.queue_key, j.task_key, j.priority, j.tenant, case when j.extras & 64 <> 0 then j.ordering end as ordering
              from job j where j.id = g.id offset 0) j
    ), ordered as (
        insert into keyed (key, id) select f.ordering, f.id from found f where f.ordering is not null on conflict do nothing
        returning key, id
    ), deposed as (
        -- It may have been the head when it ended, and nobody has looked since.
        update key_head h set id = null from ordered o where h.key = o.key and h.id = o.id
    ), turned as (
        -- Its queue goes round the tenants now.
        update job j set tenant_key = f.tenant from found f where j.id = f.id and f.tenant <> 0 and j.tenant_key is null
    ), again as (
        insert into ready (queue, tenant, priority, pos, id, task, ready_at, run)
        select f.queue_key, f.tenant, coalesce(p_priority, f.priority), nextval('pos'), f.id, f.task_key, v_now, f.run
          from found f
        returning id
    )
    select array_agg(a.id) into v_moved from again a;
    if v_moved is not null then
        delete from result where id = any(v_moved);
        delete from wish where id = any(v_moved);
        perform note_jobs_1('redrive', v_moved, p_by, p_reason, v_now);
        perform ring_1();
    end if;
    return query select unnest(v_moved);
end
$$;
