-- Keeps finished steps of live attempts; the first value of a name stays. Answers the places of those that were not kept: held
-- when an open transaction holds the attempt, else it is over. Nobody waits for such a transaction: it may be a user's.
-- Lock: the claimed rows FOR KEY SHARE SKIP LOCKED, by id; then the step rows. Index: claimed_pkey, step_pkey.
-- Differs: SQLite needs no lock, so that nothing is held there.
create function {schema}.keep_steps_1(
    p_incarnation bigint, p_ids bigint[], p_runs int[], p_names text[], p_values bytea[]
) returns table (place int, held boolean)
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_live bigint[];
    v_all boolean;
begin
    perform require_read_committed_1();
    v_live := array(
        select l.place from (
            select u.* from unnest(p_ids, p_runs) with ordinality as u (id, run, place) order by u.id, u.place) l
         cross join lateral (
            select 1 from claimed c where c.incarnation = p_incarnation and c.id = l.id and c.run = l.run
               for key share skip locked) c);
    v_all := cardinality(v_live) = cardinality(p_ids);
    insert into step as s (id, name, value)
    select distinct on (u.id, u.name) u.id, u.name, u.value
      from unnest(p_ids, p_names, p_values) with ordinality as u (id, name, value, place)
     where v_all or u.place = any(v_live)
     order by u.id, u.name, u.place
        on conflict (id, name) do update set value = excluded.value where s.value is null;
    if not v_all then
        return query
        select u.place::int, exists (
            select 1 from claimed c where c.incarnation = p_incarnation and c.id = u.id and c.run = u.run)
          from unnest(p_ids, p_runs) with ordinality as u (id, run, place)
         where u.place <> all(v_live);
    end if;
end
$$;
