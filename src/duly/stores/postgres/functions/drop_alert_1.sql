-- Forgets a rule for a target. Lock: its row. Index: alert_pkey. Differs: none.
create function {schema}.drop_alert_1(p_rule text, p_target text) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    delete from alert a where a.rule = p_rule and a.target = p_target;
    return found;
end
$$;
