-- Keeps what went wrong at a due time, if the schedule still is due at p_expected; false when somebody was faster, or holds it.
-- Lock: its row FOR UPDATE SKIP LOCKED: who holds it tries the same due time, and may succeed. Index: schedule_pkey.
-- Differs: SQLite has one writer.
create function {schema}.fail_schedule_1(p_name text, p_expected timestamptz, p_failure text, p_now timestamptz)
returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    perform 1 from schedule s where s.name = p_name and s.next_at = p_expected and not s.paused for update skip locked;
    if not found then
        return false;
    end if;
    update schedule s
       set failure = p_failure, failed_at = coalesce(p_now, clock_timestamp()), failures = s.failures + 1
     where s.name = p_name;
    return true;
end
$$;
