-- Sees to it that somebody looks again at limits that the caller has locked, where jobs wait behind them: now where one may
-- start, at a known time where it opens then; else their holders leave word.
-- Lock: the caller's. Index: blocked_gate, limit_state_pkey and those of open_limits_1. Differs: none.
create function {schema}.watch_limits_1(p_keys bigint[], p_now timestamptz) returns void
language plpgsql as $$
begin
    with waited as materialized (
        select o.key, o.next_at, case when o.free <= 0 then 'infinity'
                    else coalesce(greatest(o.closed_until, greatest(o.tat, p_now) - (o.burst - 1) * o.pace), '-infinity')
               end as due
          from open_limits_1(array(
            select u.key from unnest(p_keys) as u (key) cross join lateral (
                select 1 from blocked b where b.gate = u.key limit 1) w), p_now) o
    ), due as (
        select w.key, case when w.due <= p_now then '-infinity' else w.due end as due from waited w
         where w.due < 'infinity' and (w.due <= p_now or w.due is distinct from w.next_at)
    ), noted as (
        update limit_state s set next_at = d.due from due d where s.key = d.key and d.due > p_now
    )
    insert into released (due, kind, key) select d.due, 2, d.key from due d;
end
$$;
