-- ready, scheduled, blocked -> skipped for jobs whose unique key went to a newer one.
-- Lock: the waiting rows, which take_unique_1 has locked. Index: ready_id, scheduled_pkey, blocked_pkey.
-- Differs: none.
create function {schema}.replace_waiting_1(p_ids bigint[], p_by bigint[], p_now timestamptz) returns void
language plpgsql as $$
declare
    v_moved int;
begin
    with gone as (
        delete from ready where id = any(p_ids) returning id, run, failed, lost, interrupted, snoozed
    ), gone_later as (
        delete from scheduled where id = any(p_ids) returning id, run, failed, lost, interrupted, snoozed
    ), gone_blocked as (
        delete from blocked where id = any(p_ids) returning id, run, failed, lost, interrupted, snoozed
    ), gone_all as (
        select g.*, 'replaced by job ' || u.by as reason
          from (select * from gone union all select * from gone_later union all select * from gone_blocked) g
          join unnest(p_ids, p_by) as u (id, by) on u.id = g.id
    )
    select count(finish_waiting_2(g.ids, g.runs, g.failed, g.lost, g.interrupted, g.snoozed, 'skipped', g.reasons, null, p_now))
      into v_moved
      from (select array_agg(id) as ids, array_agg(run) as runs, array_agg(failed) as failed, array_agg(lost) as lost,
                   array_agg(interrupted) as interrupted, array_agg(snoozed) as snoozed, array_agg(reason) as reasons
              from gone_all having count(*) > 0) g;
end
$$;
