-- An entry about something that no function of ours does. Lock, index: note_act_2. Differs: none.
create function {schema}.append_audit_1(
    p_verb text, p_target text, p_by text, p_reason text, p_detail text, p_now timestamptz) returns bigint
language sql security definer
set search_path = {schema}, pg_temp as $$
    select note_act_2(p_verb, p_target, p_by, p_reason, p_detail, p_now)
$$;
