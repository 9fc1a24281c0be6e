-- Sets a breaker by hand, until it is set again; NULL: by its own counts again, starting closed. False without a breaker.
-- Lock: the limit_state row. Index: limit_policy_pkey, limit_state_pkey. Differs: none.
create function {schema}.set_breaker_1(p_name text, p_state text, p_by text, p_reason text, p_now timestamptz) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_key bigint := key_of_1(p_name);
begin
    if not exists (select 1 from limit_policy p where p.key = v_key and p.breaker is not null) then
        return false;
    end if;
    insert into limit_state (key, name, policy, forced) values (v_key, p_name, v_key, p_state)
        on conflict (key) do update set forced = excluded.forced, breaker_state = null, breaker_until = null, calls = 0,
                                        failures = 0, window_at = null;
    insert into released (due, kind, key) values ('-infinity', 2, v_key);
    perform ring_1();
    perform note_act_1('breaker ' || p_name || ' ' || coalesce(p_state, 'by its counts'), p_by, p_reason, 0,
                       coalesce(p_now, clock_timestamp()));
    return true;
end
$$;
