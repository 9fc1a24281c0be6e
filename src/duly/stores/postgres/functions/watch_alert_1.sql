-- Keeps what was seen of a rule. Lock: its row. Index: alert_pkey. Differs: none.
create function {schema}.watch_alert_1(p_rule text, p_target text, p_since timestamptz, p_value text) returns void
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    insert into alert (rule, target, state, change_id, since, value) values (p_rule, p_target, 'clear', 0, p_since, p_value)
        on conflict (rule, target) do update set since = excluded.since, value = excluded.value;
end
$$;
