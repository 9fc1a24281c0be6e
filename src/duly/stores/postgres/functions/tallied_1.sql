-- Up to when all is counted. Lock: none. Index: sweep_pkey. Differs: none.
create function {schema}.tallied_1() returns timestamptz
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    select s.last_at from sweep s where s.name = 'tally'
$$;
