-- Stores usual jobs (see enqueue_one_2) that differ in their arguments only. Answers their ids in the order asked. Lock: none.
-- Index: none. Differs: as enqueue_one_2.
create function {schema}.enqueue_alike_2(
    p_queue text, p_queue_key bigint, p_suspect_key bigint, p_task text, p_task_key bigint, p_args bytea[], p_priority int,
    p_timeout float8, p_attempts int, p_tenant text, p_correlation text, p_trigger text, p_now timestamptz
) returns bigint[]
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_timeout interval := p_timeout * interval '1 second';
    v_ids bigint[];
begin
    with asked as materialized (
        select nextval('pos') as id, u.args from unnest(p_args) as u (args)
    ), stored as (
        insert into job (id, queue_key, suspect_key, task_key, enqueued_at, timeout, priority, attempts, queue, task, tenant,
                         correlation_id, trigger, args)
        select a.id, p_queue_key, p_suspect_key, p_task_key, v_now, v_timeout, p_priority, p_attempts, p_queue, p_task, p_tenant,
               p_correlation, p_trigger, a.args
          from asked a
    ), due as (
        insert into ready (queue, priority, pos, id, task, ready_at)
        select p_queue_key, p_priority, a.id, a.id, p_task_key, v_now from asked a
    )
    select array_agg(a.id) into v_ids from asked a;
    perform ring_1();
    return v_ids;
end
$$;
