-- Ends a pause; whether it was still in force. Lock: its row. Index: pause_pkey. Differs: none.
create function {schema}.resume_2(p_target text, p_by text, p_reason text, p_now timestamptz) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_was boolean;
begin
    delete from pause where target = p_target returning until is null or until > v_now into v_was;
    if v_was then
        perform note_act_2('resume', p_target, p_by, p_reason, '{}', v_now);
    end if;
    perform ring_1();
    return coalesce(v_was, false);
end
$$;
