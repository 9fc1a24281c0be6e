-- Ends a silence; false when it is over already, or unknown. Lock: its row. Index: silence_pkey. Differs: none.
create function {schema}.end_silence_1(p_id bigint, p_by text, p_reason text, p_now timestamptz) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_name text;
begin
    update silence s set until = v_now where s.id = p_id and s.until > v_now
    returning 'alert:' || s.rule || ':' || s.target into v_name;
    if v_name is null then
        return false;
    end if;
    perform note_act_2('unsilence', v_name, p_by, p_reason, '{}', v_now);
    return true;
end
$$;
