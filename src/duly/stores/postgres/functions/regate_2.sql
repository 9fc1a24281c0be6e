-- Sets jobs that are blocked behind others than before: p_causes and p_gates say what. Rows of `blocked` are moved, never
-- updated. Lock: the blocked rows are the caller's. Index: blocked_pkey. Differs: SQLite updates them.
create function {schema}.regate_2(p_ids bigint[], p_causes int[], p_gates bigint[], p_now timestamptz) returns void
language plpgsql as $$
begin
    with moved as materialized (
        select u.cause as cause_now, u.gate as gate_now, b.*
          from unnest(p_ids, p_causes, p_gates) as u (id, cause, gate)
         cross join lateral (
            select b.ctid as tid, b.id, b.task, b.queue, b.tenant, b.pos, b.since, b.cause, b.priority, b.run, b.failed, b.lost,
                   b.interrupted, b.snoozed, b.expires_at
              from blocked b where b.id = u.id offset 0) b
    ), gone as (
        delete from blocked where ctid = any(array(select m.tid from moved m)) returning 1
    )
    insert into blocked (id, task, queue, tenant, pos, since, cause, gate, priority, run, failed, lost, interrupted, snoozed,
                         expires_at)
    select m.id, m.task, m.queue, m.tenant, m.pos, case when m.cause = 4 or m.cause_now = 3 then m.since else p_now end,
           m.cause_now, m.gate_now, m.priority, m.run, m.failed, m.lost, m.interrupted, m.snoozed, m.expires_at
      -- Not before they are gone: the new rows have their ids.
      from moved m where (select count(*) from gone) > 0;
end
$$;
