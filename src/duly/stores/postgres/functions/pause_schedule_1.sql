-- Pauses a schedule; false when there is none. Lock: its row. Index: schedule_pkey. Differs: none.
create function {schema}.pause_schedule_1(p_name text, p_by text, p_reason text, p_now timestamptz) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    update schedule s set paused = true where s.name = p_name;
    if found then
        perform note_act_1('pause schedule:' || p_name, p_by, p_reason, 0, coalesce(p_now, clock_timestamp()));
        return true;
    end if;
    return false;
end
$$;
