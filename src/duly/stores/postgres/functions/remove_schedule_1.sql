-- Removes a schedule; its jobs stay. Lock: its row. Index: schedule_pkey. Differs: none.
create function {schema}.remove_schedule_1(p_name text, p_by text, p_reason text, p_now timestamptz) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    delete from schedule s where s.name = p_name;
    if found then
        perform note_act_1('remove schedule:' || p_name, p_by, p_reason, 0, coalesce(p_now, clock_timestamp()));
        return true;
    end if;
    return false;
end
$$;
