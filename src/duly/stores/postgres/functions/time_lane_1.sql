-- Notes when a limit of a lane opens that lets nothing start now, if a time is known. Lock: the caller's. Index: those of
-- open_limits_1. Differs: none.
create function {schema}.time_lane_1(p_key bigint, p_now timestamptz) returns void
language plpgsql as $$
begin
    with due as (
        select greatest(o.closed_until, o.tat - (o.burst - 1) * o.pace) as due, o.next_at
          from open_limits_1(array[p_key], p_now) o
    ), noted as (
        update limit_state s set next_at = d.due from due d
         where s.key = p_key and d.due > p_now and d.due < 'infinity' and d.due is distinct from d.next_at returning d.due
    )
    insert into released (due, kind, key) select n.due, 2, p_key from noted n;
end
$$;
