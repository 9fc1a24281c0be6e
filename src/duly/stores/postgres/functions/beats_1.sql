-- Every worker row with its beat, for a reaper's watch. Lock: none. Index: worker_pkey. Differs: none.
create function {schema}.beats_1(p_now timestamptz)
returns table (incarnation bigint, beat bigint, lease float8, age float8)
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    return query
    select w.incarnation, w.beat, extract(epoch from w.lease)::float8,
           extract(epoch from coalesce(p_now, clock_timestamp()) - w.beat_at)::float8
      from worker w order by w.incarnation;
end
$$;
