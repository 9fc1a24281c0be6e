-- What duly's relations used lately, oldest first. Lock: none. Index: store_use_pkey, one range. Differs: none.
create function {schema}.uses_1(p_within float8, p_now timestamptz)
returns table (at timestamptz, used bigint)
language sql stable security definer
set search_path = {schema}, pg_temp as $$
    select u.at, u.used from store_use u
     where u.at >= coalesce(p_now, clock_timestamp()) - p_within * interval '1 second' order by u.at
$$;
