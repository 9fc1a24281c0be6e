-- The stored arguments of jobs. Lock: none. Index: job_pkey. Differs: none.
create function {schema}.arguments_1(p_ids bigint[]) returns table (id bigint, args bytea)
language plpgsql stable security definer
set search_path = {schema}, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off as $$
#variable_conflict use_column
begin
    return query
    select j.id, j.args from unnest(p_ids) as u (id) cross join lateral (
        select j.id, j.args from job j where j.id = u.id offset 0) j;
end
$$;
