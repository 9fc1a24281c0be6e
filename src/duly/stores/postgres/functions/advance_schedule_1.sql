-- Moves a tick's schedule on in the transaction that enqueues for it, if it still is due at p_expected. From then on nothing
-- in that transaction waits longer than 3 s for a lock: a key may be held by a user who went home.
-- Lock: its row FOR UPDATE SKIP LOCKED: who holds it has been faster, and may be at its tick for long. Index: schedule_pkey.
-- Differs: SQLite has one writer.
create function {schema}.advance_schedule_1(
    p_name text, p_expected timestamptz, p_next_at timestamptz, p_last_at timestamptz, p_fired bigint) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    perform 1 from schedule s where s.name = p_name and s.next_at = p_expected and not s.paused for update skip locked;
    if not found then
        return false;
    end if;
    if current_setting('lock_timeout') = '0' then
        perform set_config('lock_timeout', '3s', true);
    end if;
    update schedule s
       set next_at = greatest(s.next_at, p_next_at), last_at = p_last_at, fired = s.fired + p_fired,
           failure = null, failed_at = null, failures = 0
     where s.name = p_name;
    return true;
end
$$;
