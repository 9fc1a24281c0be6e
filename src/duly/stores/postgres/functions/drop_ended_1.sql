-- Ends those of these blocked jobs that are expired or stale; answers the others, in their order.
-- Lock: the blocked rows are the caller's. Index: blocked_pkey, job_pkey, newest_pkey. Differs: none.
create function {schema}.drop_ended_1(p_ids bigint[], p_now timestamptz) returns bigint[]
language plpgsql as $$
declare
    v_ended bigint[];
    v_reasons text[];
    v_moved int;
begin
    select array_agg(b.id), array_agg(b.reason) into v_ended, v_reasons
      from unnest(p_ids) as u (id) cross join lateral (
        select b.id, case when b.expires_at <= p_now then 'expired' else 'stale' end as reason
          from blocked b join job j on j.id = b.id
         where b.id = u.id and (b.expires_at <= p_now or j.extras & 8 <> 0 and exists (
            select 1 from newest n where n.key = j.unique_key and n.version > j.version and n.until > p_now)) offset 0) b;
    if v_ended is null then
        return p_ids;
    end if;
    with gone as (
        delete from blocked where id = any(v_ended) returning id, run, failed, lost, interrupted, snoozed
    )
    select count(finish_waiting_3(g.ids, g.runs, g.failed, g.lost, g.interrupted, g.snoozed, 'skipped', g.reasons, null, p_now))
      into v_moved
      from (select array_agg(g.id) as ids, array_agg(g.run) as runs, array_agg(g.failed) as failed, array_agg(g.lost) as lost,
                   array_agg(g.interrupted) as interrupted, array_agg(g.snoozed) as snoozed, array_agg(r.reason) as reasons
              from gone g join unnest(v_ended, v_reasons) as r (id, reason) on r.id = g.id) g;
    return array(select u.id from unnest(p_ids) with ordinality as u (id, place) where u.id <> all(v_ended) order by u.place);
end
$$;
