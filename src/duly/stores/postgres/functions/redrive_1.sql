-- dead, cancelled, skipped -> ready at the tail, in order of id: counters 0, run kept, an old expiry forgotten.
-- Lock: the final rows, by id. Index: dead_pkey, finished_pkey, job_pkey. Differs: none.
create function {schema}.redrive_1(p_ids bigint[], p_by text, p_reason text, p_priority int, p_now timestamptz)
returns setof bigint
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_moved bigint[];
begin
    with gone as (
        delete from dead where id = any(p_ids) returning id, run
    ), gone_finished as (
        delete from finished where id = any(p_ids) and status in ('cancelled', 'skipped') returning id, run
    ), gone_all as (
        select * from gone union all select * from gone_finished order by id
    ), again as (
        insert into ready (queue, priority, pos, id, task, ready_at, run)
        select j.queue_key, coalesce(p_priority, j.priority), nextval('pos'), g.id, j.task_key, v_now, g.run
          from gone_all g cross join lateral (
            select j.queue_key, j.task_key, j.priority from job j where j.id = g.id offset 0) j
        returning id
    )
    select array_agg(a.id) into v_moved from again a;
    if v_moved is not null then
        delete from result where id = any(v_moved);
        delete from wish where id = any(v_moved);
        perform note_act_1('redrive', p_by, p_reason, cardinality(v_moved), v_now);
        perform ring_1();
    end if;
    return query select unnest(v_moved);
end
$$;
