-- blocked -> ready at the tail for jobs of tasks that are no longer paused.
-- Lock: blocked rows FOR UPDATE SKIP LOCKED. Index: blocked_cause. Differs: none.
create function {schema}.unpark_resumed_2(p_now timestamptz) returns int
language plpgsql as $$
declare
    v_task bigint;
    v_moved int;
    v_unparked int := 0;
begin
    for v_task in select t from blocked_tasks_1(2::smallint) t loop
        continue when exists (select 1 from pause p where p.key = v_task and p.target like 'task:%'
                                 and (p.until is null or p.until > p_now));
        with gone as (
            delete from blocked where ctid = any(array(
                select b.ctid from blocked b
                 where b.cause = 2 and b.task = v_task order by b.pos limit 5000 for update skip locked))
            returning id, task, queue, tenant, pos, priority, run, failed, lost, interrupted, snoozed, expires_at
        ), sorted as (
            select * from gone order by pos
        )
        insert into ready (queue, tenant, priority, pos, id, task, ready_at, run, failed, lost, interrupted, snoozed, expires_at)
        select s.queue, s.tenant, s.priority, nextval('pos'), s.id, s.task, p_now, s.run, s.failed, s.lost, s.interrupted, s.snoozed,
               s.expires_at
          from sorted s;
        get diagnostics v_moved = row_count;
        v_unparked := v_unparked + v_moved;
    end loop;
    if v_unparked > 0 then
        perform ring_1();
    end if;
    return v_unparked;
end
$$;
