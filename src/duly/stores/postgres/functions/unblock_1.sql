-- blocked -> ready in their old places, for jobs that may go on and have no slot here. Rings where somebody else may have one.
-- Lock: the blocked rows are the caller's. Index: blocked_pkey. Differs: none.
create function {schema}.unblock_1(p_ids bigint[], p_now timestamptz) returns void
language plpgsql as $$
begin
    with gone as (
        delete from blocked where id = any(p_ids)
        returning id, queue, tenant, priority, pos, task, since, cause, run, failed, lost, interrupted, snoozed, expires_at
    )
    insert into ready (queue, tenant, priority, pos, id, task, ready_at, run, failed, lost, interrupted, snoozed, expires_at,
                       limited_at)
    select g.queue, g.tenant, g.priority, g.pos, g.id, g.task, least(g.since, p_now), g.run, g.failed, g.lost, g.interrupted,
           g.snoozed, g.expires_at, case when g.cause = 4 then g.since end
      from gone g;
    if found then
        perform ring_1();
    end if;
end
$$;
