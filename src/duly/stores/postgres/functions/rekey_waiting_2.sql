-- Moves waiting jobs that stand under other keys than those of their names: producers and workers of the previous release,
-- which makes other ones, still put some there, where nobody else looks. They keep their order; those that are scheduled
-- come by when they are due. At most 5,000 of a lane and of a task in one round.
-- Lock: ready and blocked rows FOR UPDATE SKIP LOCKED. Index: ready_pkey and blocked_cause, one probe per lane and task;
-- job_pkey. Differs: SQLite's is Python.
create function {schema}.rekey_waiting_2() returns void
language plpgsql as $$
declare
    v_lane bigint := -9223372036854775808;
    v_cause smallint;
    v_task bigint;
    v_id bigint;
    v_name text;
begin
    loop
        select r.queue, r.id into v_lane, v_id from ready r
         where r.queue > v_lane order by r.queue, r.tenant, r.priority, r.pos limit 1;
        exit when not found;
        select j.queue into v_name from job j where j.id = v_id;
        continue when (v_lane in (key_of_1(v_name), key_of_1(v_name || E'\x1fsuspect'))) is not false;
        with gone as (
            delete from ready where ctid = any(array(
                select r.ctid from ready r where r.queue = v_lane
                 order by r.queue, r.tenant, r.priority, r.pos limit 5000 for update skip locked))
            returning id, tenant, priority, pos, ready_at, run, failed, lost, interrupted, snoozed, expires_at
        ), named as (
            update job j set queue_key = key_of_1(j.queue), suspect_key = key_of_1(j.queue || E'\x1fsuspect'),
                   task_key = key_of_1(j.task)
              from gone g where j.id = g.id
            returning case when g.lost > 0 then j.suspect_key else j.queue_key end as lane, j.task_key, g.*
        )
        insert into ready (queue, tenant, priority, pos, id, task, ready_at, run, failed, lost, interrupted, snoozed, expires_at)
        select n.lane, n.tenant, n.priority, n.pos, n.id, n.task_key, n.ready_at, n.run, n.failed, n.lost, n.interrupted, n.snoozed,
               n.expires_at
          from named n;
        perform ring_1();
    end loop;
    for v_cause, v_task in
        select c.cause, t.task from (values (1::smallint), (2::smallint)) as c (cause)
         cross join lateral blocked_tasks_1(c.cause) as t (task)
    loop
        select j.task into v_name from job j where j.id = (
            select b.id from blocked b where b.cause = v_cause and b.task = v_task order by b.pos limit 1);
        continue when (v_task = key_of_1(v_name)) is not false;
        with gone as (
            delete from blocked where ctid = any(array(
                select b.ctid from blocked b where b.cause = v_cause and b.task = v_task
                 order by b.pos limit 5000 for update skip locked))
            returning id, tenant, pos, since, cause, priority, run, failed, lost, interrupted, snoozed, expires_at
        ), named as (
            update job j set queue_key = key_of_1(j.queue), suspect_key = key_of_1(j.queue || E'\x1fsuspect'),
                   task_key = key_of_1(j.task)
              from gone g where j.id = g.id
            returning case when g.lost > 0 then j.suspect_key else j.queue_key end as lane, j.task_key, g.*
        )
        insert into blocked (id, task, queue, tenant, pos, since, cause, priority, run, failed, lost, interrupted, snoozed, expires_at)
        select n.id, n.task_key, n.lane, n.tenant, n.pos, n.since, n.cause, n.priority, n.run, n.failed, n.lost, n.interrupted,
               n.snoozed, n.expires_at
          from named n;
    end loop;
end
$$;
