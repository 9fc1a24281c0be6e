-- blocked -> ready for jobs of tasks that were unknown, at their old position: they have stood in line already.
-- Lock: blocked rows FOR UPDATE SKIP LOCKED. Index: blocked_cause. Differs: none.
create function {schema}.unpark_known_1(p_lane bigint, p_tasks bigint[], p_most int) returns int
language plpgsql as $$
declare
    v_moved int;
begin
    with gone as (
        delete from blocked where ctid = any(array(
            select x.tid from unnest(p_tasks) as t (task) cross join lateral (
                select b.ctid as tid from blocked b
                 where b.cause = 1 and b.task = t.task and b.queue = p_lane
                 order by b.pos limit p_most for update skip locked) x
             limit p_most))
        returning id, task, queue, pos, priority, run, failed, lost, interrupted, snoozed, expires_at
    )
    insert into ready (queue, priority, pos, id, task, ready_at, run, failed, lost, interrupted, snoozed, expires_at)
    select g.queue, g.priority, g.pos, g.id, g.task, clock_timestamp(), g.run, g.failed, g.lost, g.interrupted, g.snoozed,
           g.expires_at
      from gone g;
    get diagnostics v_moved = row_count;
    return v_moved;
end
$$;
