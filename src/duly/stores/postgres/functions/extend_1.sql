-- Moves the deadline of one live attempt. Lock: its claimed row. Index: claimed_pkey. Differs: none.
create function {schema}.extend_1(p_incarnation bigint, p_id bigint, p_run int, p_by float8, p_now timestamptz)
returns boolean
language plpgsql security definer
set search_path = {schema}, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
begin
    update claimed set deadline = least(deadline + p_by * interval '1 second', '9999-01-01Z')
     where incarnation = p_incarnation and id = p_id and run = p_run;
    return found;
end
$$;
