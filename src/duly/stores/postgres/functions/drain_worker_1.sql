-- Asks one worker to stop claiming and end. Lock: its row. Index: worker_pkey. Differs: none.
create function {schema}.drain_worker_1(p_incarnation bigint) returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    update worker set draining = true where incarnation = p_incarnation;
    return found;
end
$$;
