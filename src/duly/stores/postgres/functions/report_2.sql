-- Writes progress and cursors of live attempts; answers what the incarnation holds, and which of it shall be cancelled.
-- Lock: progress and step rows of own jobs. Index: claimed_pkey, progress_pkey, wish_pkey. Differs: none.
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
    if cardinality(p_ids) > 0 then
        -- The claim stays locked until the commit, so that no progress row outlives its attempt.
        perform 1 from unnest(p_ids, p_runs) as u (id, run) cross join lateral (
            select 1 from claimed c where c.incarnation = p_incarnation and c.id = u.id and c.run = u.run for key share) held;
        insert into progress as p (id, run, done, of, note, at)
        select u.id, u.run, u.done, u.of, u.note, v_now
          from unnest(p_ids, p_runs, p_done, p_of, p_notes) as u (id, run, done, of, note)
         cross join lateral (
            select 1 from claimed c where c.incarnation = p_incarnation and c.id = u.id and c.run = u.run offset 0) held
            on conflict (id) do update set run = excluded.run, done = excluded.done, of = excluded.of, note = excluded.note,
                                           at = excluded.at;
    end if;
    if cardinality(p_cursor_ids) > 0 then
        perform keep_cursors_1(p_incarnation, p_cursor_ids, p_cursor_runs, p_cursor_names, p_cursor_positions);
    end if;
    return query
    select c.id, c.run, w.id is not null from claimed c
      left join lateral (select w.id from wish w where w.id = c.id offset 0) w on true
     where c.incarnation = p_incarnation order by c.incarnation, c.id;
end
$$;
