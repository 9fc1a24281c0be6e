-- Silences in force, the newest first. Lock: none. Index: the table, silences only. Differs: none.
create function {schema}.silences_1(p_now timestamptz) returns setof {schema}.silence
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    select s.* from silence s where s.until > coalesce(p_now, clock_timestamp()) order by s.id desc
$$;
