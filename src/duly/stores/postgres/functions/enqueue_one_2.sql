-- Stores the usual job: ready at once, from no handler, without keys, tags or an expiry; with its trigger, as most jobs of web
-- requests have one. Answers its id. Writes only, so that it never fails by itself under any isolation level of a caller.
-- Lock: none. Index: none. Differs: SQLite takes ids from its sequence row.
create function {schema}.enqueue_one_2(
    p_queue text, p_queue_key bigint, p_suspect_key bigint, p_task text, p_task_key bigint, p_args bytea, p_priority int,
    p_timeout float8, p_attempts int, p_tenant text, p_correlation text, p_trigger text, p_now timestamptz
) returns bigint
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_id bigint := nextval('pos');
begin
    insert into job (id, queue_key, suspect_key, task_key, enqueued_at, timeout, priority, attempts, queue, task, tenant,
                     correlation_id, trigger, args)
    values (v_id, p_queue_key, p_suspect_key, p_task_key, v_now, p_timeout * interval '1 second', p_priority, p_attempts, p_queue,
            p_task, p_tenant, p_correlation, p_trigger, p_args);
    insert into ready (queue, priority, pos, id, task, ready_at)
    values (p_queue_key, p_priority, v_id, v_id, p_task_key, v_now);
    perform ring_1();
    return v_id;
end
$$;
