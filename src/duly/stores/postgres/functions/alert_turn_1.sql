-- Takes the turn to look at the rules, if nobody did lately. Lock: sweep_turn_1's. Index: sweep_pkey. Differs: none.
create function {schema}.alert_turn_1(p_every float8, p_now timestamptz) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    return sweep_turn_1('alerts', coalesce(p_now, clock_timestamp()), p_every);
end
$$;
