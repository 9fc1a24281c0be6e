-- The steps and cursors of a job. Lock: none. Index: step_pkey. Differs: none.
create function {schema}.steps_1(p_id bigint) returns table (name text, value bytea, "position" bigint)
language plpgsql stable security definer
set search_path = {schema}, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
begin
    return query select s.name, s.value, s.position from step s where s.id = p_id order by s.name;
end
$$;
