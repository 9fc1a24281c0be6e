-- Has somebody look again at whatever waits behind limits of a policy, for its terms have changed.
-- Lock: none. Index: blocked_gate, limit_state_pkey. Differs: none.
create function {schema}.let_on_1(p_key bigint) returns void
language plpgsql as $$
begin
    insert into released (due, kind, key)
    select '-infinity'::timestamptz, 2, g.gate from waited_gates_1() g
     where g.cause = 4 and (g.gate = p_key or exists (select 1 from limit_state s where s.key = g.gate and s.policy = p_key));
    perform ring_1();
end
$$;
