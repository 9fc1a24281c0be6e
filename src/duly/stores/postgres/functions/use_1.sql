-- What duly's relations use, at most p_age seconds old, with each declared queue; no row while somebody else measures for the first
-- time. Lock: that of measure_use_1. Index: store_use_pkey; a row per declared queue. Differs: see measure_use_1.
create function {schema}.use_1(p_age float8, p_now timestamptz)
returns table (used bigint, queue text, importance int, sheds boolean)
language plpgsql security definer
set search_path = {schema}, pg_temp
set jit = off as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    perform measure_use_1(p_age * interval '1 second', v_now);
    return query
    select s.used, q.name, q.importance, q.when_full = 'shed'
      from (select u.used from store_use u order by u.at desc limit 1) s
      left join queue q on true;
end
$$;
