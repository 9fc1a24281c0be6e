-- What one tenant was sold. Lock: its row. Index: tenant_pkey. Differs: none.
create function {schema}.set_plan_1(
    p_name text, p_weight int, p_most int, p_interval float8, p_burst int, p_by text, p_reason text, p_now timestamptz)
returns void
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    insert into tenant as t (key, name, weight, max_running, interval, burst, by, reason, at)
    values (key_of_1(p_name), p_name, p_weight, p_most, p_interval, p_burst, p_by, p_reason, v_now)
        on conflict (name) do update set weight = excluded.weight, max_running = excluded.max_running,
            interval = excluded.interval, burst = excluded.burst, by = excluded.by, reason = excluded.reason, at = excluded.at;
    perform note_act_1('plan ' || p_name, p_by, p_reason, 0, v_now);
    perform ring_1();
end
$$;
