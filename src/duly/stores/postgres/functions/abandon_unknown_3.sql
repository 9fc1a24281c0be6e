-- blocked -> dead for jobs of tasks that no live worker knows, parked before p_before.
-- Lock: blocked rows FOR UPDATE SKIP LOCKED, then settle_ends_2's. Index: blocked_cause, job_pkey, worker_pkey
-- whole. Differs: none.
create function {schema}.abandon_unknown_3(p_before timestamptz, p_now timestamptz) returns int
language plpgsql as $$
declare
    v_task bigint;
    v_moved int;
    v_abandoned int := 0;
    v_rich bigint[];
begin
    for v_task in select t from blocked_tasks_1(1::smallint) t loop
        continue when exists (select 1 from worker w where w.known ? v_task::text);
        with gone as (
            delete from blocked where ctid = any(array(
                select b.ctid from blocked b
                 where b.cause = 1 and b.task = v_task and b.since <= p_before
                 order by b.pos limit 5000 for update skip locked))
            returning id, run, failed, lost, interrupted, snoozed
        ), dying as (
            insert into dead (id, queue_key, enqueued_at, died_at, run, failed, lost, interrupted, snoozed, queue, task, tenant,
                              correlation_id, reason)
            select g.id, j.queue_key, j.enqueued_at, p_now, g.run, g.failed, g.lost, g.interrupted, g.snoozed, j.queue, j.task,
                   j.tenant, j.correlation_id, 'no worker knows the task ' || j.task
              from gone g cross join lateral (
                select j.queue_key, j.enqueued_at, j.queue, j.task, j.tenant, j.correlation_id from job j
                 where j.id = g.id offset 0) j
            returning id
        )
        select count(*), array_agg(y.id) filter (where j.extras <> 0) into v_moved, v_rich
          from dying y cross join lateral (select j.extras from job j where j.id = y.id offset 0) j;
        v_abandoned := v_abandoned + v_moved;
        if v_rich is not null then
            perform settle_ends_2(v_rich, array_fill('dead'::text, array[cardinality(v_rich)]), true, p_now);
        end if;
    end loop;
    return v_abandoned;
end
$$;
