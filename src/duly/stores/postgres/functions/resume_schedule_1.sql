-- Resumes a paused schedule from p_next_at on: what was due meanwhile does not fire; false when it was not paused.
-- Lock: its row. Index: schedule_pkey. Differs: none.
create function {schema}.resume_schedule_1(
    p_name text, p_next_at timestamptz, p_by text, p_reason text, p_now timestamptz) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    update schedule s set paused = false, next_at = greatest(s.next_at, p_next_at) where s.name = p_name and s.paused;
    if found then
        perform note_act_1('resume schedule:' || p_name, p_by, p_reason, 0, coalesce(p_now, clock_timestamp()));
        return true;
    end if;
    return false;
end
$$;
