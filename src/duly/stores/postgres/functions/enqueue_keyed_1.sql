-- Stores one job that is ready at once and has tags, a unique key or an ordering key, which most jobs are that are not plain.
-- Answers one row as enqueue_3. That one takes any jobs, and costs four times as much for one of these.
-- Lock: as store_jobs_2. Index: those of take_unique_1. Differs: SQLite takes ids from its sequence row.
create function {schema}.enqueue_keyed_1(
    p_queue text, p_queue_key bigint, p_suspect_key bigint, p_task text, p_task_key bigint, p_args bytea, p_priority int,
    p_timeout float8, p_attempts int, p_tenant text, p_correlation text, p_trigger text, p_tags text[], p_unique bytea,
    p_live boolean, p_replace boolean, p_ordering_key text, p_ordering bigint, p_own boolean, p_now timestamptz
) returns table (id bigint, run_at timestamptz, outcome text, place int)
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_id bigint := nextval('pos');
    v_told record;
    v_replaced bigint;
begin
    if p_unique is not null then
        if p_own then
            perform require_read_committed_1();
            -- Sooner than the connection loses its patience.
            perform set_config('lock_timeout', '10s', true);
        end if;
        v_told := take_unique_1(p_unique, v_id, 0, p_live, p_replace, null, array[v_id], array[null::bigint], not p_own, v_now);
        if v_told.holder is not null then
            return query
            select v_told.holder, (select s.run_at from scheduled s where s.id = v_told.holder), 'duplicate', 1;
            return;
        end if;
        v_replaced := v_told.replaced;
    end if;
    insert into job (id, queue_key, suspect_key, task_key, enqueued_at, timeout, priority, attempts, queue, task, tenant,
                     correlation_id, tags, trigger, args, extras, unique_key, unique_live, ordering_key, ordering)
    values (v_id, p_queue_key, p_suspect_key, p_task_key, v_now, p_timeout * interval '1 second', p_priority, p_attempts, p_queue,
            p_task, p_tenant, p_correlation, p_tags, p_trigger, p_args,
            case when p_unique is null then 0 else 4 end + case when p_ordering is null then 0 else 64 end,
            p_unique, p_live, p_ordering_key, p_ordering);
    if p_ordering is not null then
        insert into keyed (key, id) values (p_ordering, v_id);
    end if;
    if p_tags is not null then
        insert into job_tag (tag, id) select distinct t.tag, v_id from unnest(p_tags) as t (tag);
    end if;
    insert into ready (queue, priority, pos, id, task, ready_at)
    values (p_queue_key, p_priority, v_id, v_id, p_task_key, v_now);
    if v_replaced is not null then
        perform replace_waiting_1(array[v_replaced], array[v_id], v_now);
    end if;
    perform ring_1();
    return query select v_id, null::timestamptz, 'created', 1;
end
$$;
