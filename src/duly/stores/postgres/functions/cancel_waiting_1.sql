-- ready, scheduled, blocked -> cancelled; answers those cancelled.
-- Lock: the waiting rows by id, table by table, waited for: claims and promotions hold them for one statement. Rows of these
-- tables are never updated, so that a locked ctid cannot move. Index: ready_id, scheduled_pkey, blocked_pkey.
-- Differs: SQLite needs no lock.
create function {schema}.cancel_waiting_1(p_ids bigint[], p_by text, p_reason text, p_now timestamptz) returns bigint[]
language plpgsql as $$
declare
    v_cancelled bigint[];
begin
    with gone as (
        delete from ready where ctid = any(array(
            select x.tid from unnest(p_ids) as u (id) cross join lateral (
                select r.ctid as tid from ready r where r.id = u.id for update) x))
        returning id, run, failed, lost, interrupted, snoozed
    ), gone_later as (
        delete from scheduled where ctid = any(array(
            select x.tid from unnest(p_ids) as u (id) cross join lateral (
                select s.ctid as tid from scheduled s where s.id = u.id for update) x))
        returning id, run, failed, lost, interrupted, snoozed
    ), gone_blocked as (
        delete from blocked where ctid = any(array(
            select x.tid from unnest(p_ids) as u (id) cross join lateral (
                select b.ctid as tid from blocked b where b.id = u.id for update) x))
        returning id, run, failed, lost, interrupted, snoozed
    ), gone_all as (
        select * from gone union all select * from gone_later union all select * from gone_blocked
    ), ended as (
        select array_agg(id) as ids,
               finish_waiting_1(array_agg(id), array_agg(run), array_agg(failed), array_agg(lost), array_agg(interrupted),
                                array_agg(snoozed), 'cancelled', array_agg(p_reason), array_agg('cancelled by ' || p_by), p_now)
          from gone_all
    )
    select e.ids into v_cancelled from ended e;
    return coalesce(v_cancelled, '{}');
end
$$;
