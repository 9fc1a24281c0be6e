-- Writes down what was taken and reserved, and sees to it that somebody looks again where others wait. Those of p_run have
-- started: what they had reserved and take no more is free.
-- Lock: begin_taking_1's. Index: limit_state_pkey, hold_pkey, hold_id and those of watch_limits_1. Differs: none.
create function {schema}.finish_taking_1(taking {schema}.taking_1, p_run bigint[], p_incarnation bigint, p_now timestamptz)
returns void
language plpgsql as $$
begin
    if taking.kept_ids is not null then
        delete from hold where ctid = any(array(
            select h.tid from unnest(taking.taken_ids, taking.taken_keys) as u (id, key) cross join lateral (
                select h.ctid as tid from hold h where h.key = u.key and h.id = u.id and h.incarnation = 0 offset 0) h));
    end if;
    insert into hold (key, id, incarnation)
    select u.key, u.id, p_incarnation from unnest(taking.taken_keys, taking.taken_ids) as u (key, id)
     union all
    select u.key, u.id, 0 from unnest(taking.saved_keys, taking.saved_ids) as u (key, id)
        -- What damage has left of an earlier attempt.
        on conflict (key, id) do update set incarnation = excluded.incarnation, until = null;
    if taking.kept_ids && p_run then
        with gone as (
            delete from hold h where h.id = any(p_run) and h.incarnation = 0 returning key
        )
        insert into released (due, kind, key) select '-infinity'::timestamptz, 2, g.key from gone g;
    end if;
    update limit_state s set tat = p.tat
      from (select u.tat, s.tid from unnest(taking.keys, taking.tat) as u (key, tat) cross join lateral (
                select s.ctid as tid from limit_state s where s.key = u.key and s.tat is distinct from u.tat offset 0) s) p
     where s.ctid = p.tid;
    perform watch_limits_1(taking.keys, p_now);
end
$$;
