-- Sets jobs that are blocked behind others than before: p_causes and p_gates say what. Rows of `blocked` are moved, never
-- updated. Lock: the blocked rows are the caller's. Index: blocked_pkey. Differs: SQLite updates them.
create function {schema}.regate_1(p_ids bigint[], p_causes int[], p_gates bigint[], p_now timestamptz) returns void
language plpgsql as $$
begin
    with gone as (
        delete from blocked where id = any(p_ids)
        returning id, task, queue, tenant, pos, since, cause, priority, run, failed, lost, interrupted, snoozed, expires_at
    )
    insert into blocked (id, task, queue, tenant, pos, since, cause, gate, priority, run, failed, lost, interrupted, snoozed,
                         expires_at)
    select g.id, g.task, g.queue, g.tenant, g.pos, case when g.cause = 4 or u.cause = 3 then g.since else p_now end, u.cause,
           u.gate, g.priority, g.run, g.failed, g.lost, g.interrupted, g.snoozed, g.expires_at
      from gone g join unnest(p_ids, p_causes, p_gates) as u (id, cause, gate) on u.id = g.id;
end
$$;
