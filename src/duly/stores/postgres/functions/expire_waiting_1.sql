-- ready, scheduled, blocked -> skipped for expired jobs: walks on by id through `ready` and `scheduled` from where the last
-- round stopped, 20,000 rows a round.
-- Lock: the expired rows FOR UPDATE SKIP LOCKED. Index: ready_id, scheduled_pkey, blocked_pkey. Differs: none.
create function {schema}.expire_waiting_1(p_now timestamptz) returns int
language plpgsql as $$
declare
    v_ids bigint[];
    v_last bigint;
    v_walked int;
    v_expired int := 0;
    v_moved int;
begin
    select array_agg(x.id) filter (where x.expires_at <= p_now), max(x.id), count(*) into v_ids, v_last, v_walked
      from (select r.id, r.expires_at from ready r
             where r.id > coalesce((select s.position from sweep s where s.name = 'expire ready'), 0)
             order by r.id limit 20000) x;
    insert into sweep (name, last_at, position)
    values ('expire ready', p_now, case when v_walked = 20000 then v_last else 0 end)
        on conflict (name) do update set last_at = excluded.last_at, position = excluded.position;
    if v_ids is not null then
        with gone as (
            delete from ready where ctid = any(array(
                select x.tid from unnest(v_ids) as u (id) cross join lateral (
                    select r.ctid as tid from ready r where r.id = u.id and r.expires_at <= p_now for update skip locked) x))
            returning id, run, failed, lost, interrupted, snoozed
        ), ended as (
            select count(*) as moved,
                   finish_waiting_1(array_agg(id), array_agg(run), array_agg(failed), array_agg(lost), array_agg(interrupted),
                                    array_agg(snoozed), 'skipped', array_agg('expired'::text), null, p_now)
              from gone
        )
        select e.moved into v_expired from ended e;
    end if;
    select array_agg(x.id) filter (where x.expires_at <= p_now), max(x.id), count(*) into v_ids, v_last, v_walked
      from (select s.id, s.expires_at from scheduled s
             where s.id > coalesce((select w.position from sweep w where w.name = 'expire scheduled'), 0)
             order by s.id limit 20000) x;
    insert into sweep (name, last_at, position)
    values ('expire scheduled', p_now, case when v_walked = 20000 then v_last else 0 end)
        on conflict (name) do update set last_at = excluded.last_at, position = excluded.position;
    if v_ids is not null then
        with gone as (
            delete from scheduled where ctid = any(array(
                select x.tid from unnest(v_ids) as u (id) cross join lateral (
                    select s.ctid as tid from scheduled s where s.id = u.id and s.expires_at <= p_now for update skip locked) x))
            returning id, run, failed, lost, interrupted, snoozed
        ), ended as (
            select count(*) as moved,
                   finish_waiting_1(array_agg(id), array_agg(run), array_agg(failed), array_agg(lost), array_agg(interrupted),
                                    array_agg(snoozed), 'skipped', array_agg('expired'::text), null, p_now)
              from gone
        )
        select e.moved into v_moved from ended e;
        v_expired := v_expired + v_moved;
    end if;
    with gone as (
        delete from blocked where ctid = any(array(
            select b.ctid from blocked b where b.expires_at <= p_now order by b.id limit 5000 for update skip locked))
        returning id, run, failed, lost, interrupted, snoozed
    ), ended as (
        select count(*) as moved,
               finish_waiting_1(array_agg(id), array_agg(run), array_agg(failed), array_agg(lost), array_agg(interrupted),
                                array_agg(snoozed), 'skipped', array_agg('expired'::text), null, p_now)
          from gone
    )
    select e.moved into v_moved from ended e;
    return v_expired + v_moved;
end
$$;
