-- Asks one worker to stop claiming and end. Lock: its row. Index: worker_pkey. Differs: none.
create function {schema}.drain_worker_2(p_incarnation bigint, p_by text, p_reason text, p_now timestamptz) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    update worker set draining = true where incarnation = p_incarnation;
    if not found then
        return false;
    end if;
    perform note_act_2('drain', 'worker:' || p_incarnation, p_by, p_reason, '{}', p_now);
    return true;
end
$$;
