-- Silences a rule for a target. Lock: none. Index: silence_pkey. Differs: none.
create function {schema}.silence_alert_1(
    p_rule text, p_target text, p_name text, p_lasting float8, p_by text, p_reason text, p_now timestamptz)
returns setof {schema}.silence
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    perform note_act_2('silence', p_name, p_by, p_reason, '{}', v_now);
    return query
    insert into silence (rule, target, by, reason, at, until)
    values (p_rule, p_target, p_by, p_reason, v_now, v_now + p_lasting * interval '1 second')
    returning *;
end
$$;
