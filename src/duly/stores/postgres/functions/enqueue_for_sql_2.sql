-- The interface for SQL: one job, in the transaction of whoever calls, from a trigger, psql or any language. What is not said
-- comes from the task and the queue as they were declared last.
-- Lock: a batch FOR SHARE, so that it does not end meanwhile; then those of store_jobs_2. Index: task_pkey, queue_pkey, batch_pkey
-- and those of store_jobs_2. Differs: PostgreSQL only.
create function {schema}.enqueue(
    task text, args jsonb default '{}', queue text default null, priority int default null, delay interval default null,
    out id bigint, out outcome text, inout run_at timestamptz default null, expires interval default null,
    timeout interval default null, attempts int default null, tenant text default '', tags text[] default null,
    correlation_id text default null, idempotency_key text default null, unique_key text default null,
    unique_scope text default 'queued', on_conflict text default 'return', version bigint default null,
    ordering_key text default null, batch bigint default null)
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_declared record;
    v_queue text;
    v_bounds record;
    v_batch text;
    v_fault text;
    v_told record;
    v_tags text[] := array(
        select t.tag from unnest(enqueue.tags) with ordinality as t (tag, place) group by t.tag order by min(t.place));
begin
    perform check_name_1('task', enqueue.task, 200, ',');
    perform check_arguments_1(enqueue.args);
    select t.queue, t.priority, t.expires into v_declared from task t where t.name = enqueue.task;
    v_fault := case
        when not found and enqueue.queue is null
            then format('no App has declared the task %L: check the spelling, start its worker once, or say queue => ''...''',
                        enqueue.task)
        when enqueue.delay is not null and enqueue.run_at is not null then 'delay and run_at exclude each other; say one of them'
        when enqueue.delay < interval '0'
            then format('delay => %L is negative; write an interval such as ''30 s''', enqueue.delay)
        when extract(epoch from enqueue.delay) > 36525 * 86400.0
            then format('delay => %L is longer than 100 years; write a shorter one', enqueue.delay)
        when enqueue.run_at < '1970-01-01Z' or enqueue.run_at >= '9000-01-01Z'
            then format('run_at => %L is no due time: write a year from 1970 to 8999', enqueue.run_at)
        when enqueue.expires <= interval '0' then 'expires must be longer than nothing'
        when enqueue.timeout <= interval '0' then 'timeout must be longer than nothing'
        when enqueue.attempts < 1 then 'attempts must be 1 or more'
        when cardinality(v_tags) > 20 then format('%s tags on one job; at most 20 fit', cardinality(v_tags))
        when (enqueue.unique_scope in ('queued', 'live')) is not true then 'unique_scope is ''queued'' or ''live'''
        when (enqueue.on_conflict in ('return', 'replace')) is not true then 'on_conflict is ''return'' or ''replace'''
        when enqueue.version is not null and enqueue.unique_key is null
            then 'version needs a unique_key: it says which job of that key is the newest'
    end;
    if v_fault is not null then
        raise exception using errcode = '22023', message = v_fault;
    end if;
    perform check_name_1('queue', coalesce(enqueue.queue, v_declared.queue), 100, ',:');
    -- A task that nobody has declared yet may go to a queue that nobody has declared yet.
    if v_declared.queue is not null and enqueue.queue not in ('default', v_declared.queue)
        and not exists (select 1 from queue q where q.name = enqueue.queue) then
        raise exception using errcode = '22023', message = format(
            'task %L uses the queue %L, which is not declared; declare it with jobs.queue(%2$L) and start its worker once; '
            'known: %s', enqueue.task, enqueue.queue,
            left((select string_agg(k.name, ', ' order by k.name) from (select q.name from queue q union select 'default') k),
                 300));
    end if;
    perform check_name_1('tenant', enqueue.tenant, 200, '') where enqueue.tenant <> '';
    perform check_name_1('tag', t, 100, '') from unnest(v_tags) t;
    perform check_name_1('correlation id', enqueue.correlation_id, 200, '') where enqueue.correlation_id is not null;
    perform check_name_1('key', enqueue.idempotency_key, 255, '') where enqueue.idempotency_key is not null;
    perform check_name_1('key', enqueue.unique_key, 255, '') where enqueue.unique_key is not null;
    perform check_name_1('key', enqueue.ordering_key, 255, '') where enqueue.ordering_key is not null;
    v_queue := coalesce(enqueue.queue, v_declared.queue);
    select q.fair, q.serialise into v_bounds from queue q where q.name = v_queue;
    if enqueue.batch is not null then
        v_batch := coalesce((select b.state from batch b where b.id = enqueue.batch for share), 'missing');
        v_fault := case
            when v_batch = 'missing'
                then format('no batch %s: its transaction was rolled back or has not committed, or it is no longer kept',
                            enqueue.batch)
            when v_batch in ('completed', 'cancelled')
                then format('batch %s is %s: nothing can be added to it. Add while it is open, or make another batch',
                            enqueue.batch, v_batch)
        end;
        if v_fault is not null then
            raise exception using errcode = '22023', message = v_fault;
        end if;
    end if;
    select s.id, s.outcome, s.run_at into v_told from store_jobs_2(
        jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
            'queue', v_queue, 'task', enqueue.task,
            'priority', coalesce(enqueue.priority, v_declared.priority),
            'delay', extract(epoch from enqueue.delay), 'run_at', enqueue.run_at,
            'expires', extract(epoch from coalesce(enqueue.expires, v_declared.expires)),
            -- Timestamps end: a claim that could not say the deadline would fail for the whole lane.
            'timeout', case when enqueue.timeout is not null
                            then least(extract(epoch from enqueue.timeout), 250000 * 365.25 * 86400) end,
            'attempts', enqueue.attempts,
            'tenant', coalesce(enqueue.tenant, ''), 'tags', case when v_tags <> '{}' then v_tags end,
            'correlation_id', enqueue.correlation_id,
            'idempotency', encode(key_digest_1('idempotency', enqueue.task, coalesce(enqueue.tenant, ''),
                                               enqueue.idempotency_key), 'hex'),
            'unique', case when enqueue.unique_key is not null then jsonb_build_object(
                'digest', encode(key_digest_1('unique', enqueue.task, coalesce(enqueue.tenant, ''), enqueue.unique_key), 'hex'),
                'live', enqueue.unique_scope = 'live', 'replace', enqueue.on_conflict = 'replace') end,
            'version', enqueue.version, 'ordering_key', enqueue.ordering_key,
            'serialise', case when enqueue.ordering_key is not null and v_bounds.serialise then true end,
            'fair', case when v_bounds.fair then true end, 'batch', enqueue.batch))),
        array[convert_to(enqueue.args::text, 'UTF8')], false, clock_timestamp()) s;
    if v_told.outcome = 'reused' then
        raise exception using errcode = 'DY002', message = format(
            'idempotency key %L was used before, for job %s with other arguments; give the new request a key of its own',
            enqueue.idempotency_key, v_told.id);
    end if;
    enqueue.id := v_told.id;
    enqueue.outcome := v_told.outcome;
    enqueue.run_at := v_told.run_at;
end
$$;
