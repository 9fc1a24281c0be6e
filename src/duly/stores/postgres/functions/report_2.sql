-- Writes progress and cursors of live attempts; answers what the incarnation holds, and which of it shall be cancelled.
-- Lock: own claimed rows FOR KEY SHARE SKIP LOCKED, then progress and step rows of own jobs. Index: claimed_pkey, progress_pkey,
-- step_pkey, wish_pkey. Differs: none.
create function {schema}.report_2(
    p_incarnation bigint, p_ids bigint[], p_runs int[], p_done bigint[], p_of bigint[], p_notes text[],
    p_cursor_ids bigint[], p_cursor_runs int[], p_cursor_names text[], p_cursor_positions bigint[], p_now timestamptz
) returns table (id bigint, run int, wished boolean)
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    perform require_read_committed_1();
    -- The claims stay locked until the commit, so that no row outlives its attempt. Where somebody else has locked one, its
    -- attempt is about to end, perhaps in a user's long transaction: that one is not waited for.
    if cardinality(p_ids) > 0 then
        with held as materialized (
            select u.* from unnest(p_ids, p_runs, p_done, p_of, p_notes) as u (id, run, done, of, note) cross join lateral (
                select 1 from claimed c
                 where c.incarnation = p_incarnation and c.id = u.id and c.run = u.run for key share skip locked) c
        )
        insert into progress as p (id, run, done, of, note, at)
        select h.id, h.run, h.done, h.of, h.note, v_now from held h
            on conflict (id) do update set run = excluded.run, done = excluded.done, of = excluded.of, note = excluded.note,
                                           at = excluded.at;
    end if;
    if cardinality(p_cursor_ids) > 0 then
        with held as materialized (
            select u.* from unnest(p_cursor_ids, p_cursor_runs, p_cursor_names, p_cursor_positions) as u (id, run, name, position)
             cross join lateral (
                select 1 from claimed c
                 where c.incarnation = p_incarnation and c.id = u.id and c.run = u.run for key share skip locked) c
        )
        insert into step (id, name, position)
        select h.id, h.name, h.position from held h
            on conflict (id, name) do update set position = excluded.position;
    end if;
    return query
    select c.id, c.run, w.id is not null from claimed c
      left join lateral (select w.id from wish w where w.id = c.id offset 0) w on true
     where c.incarnation = p_incarnation order by c.incarnation, c.id;
end
$$;
