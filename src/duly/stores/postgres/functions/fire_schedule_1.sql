-- Moves a schedule on and enqueues for it, if it still is due at p_expected; no row else. Answers as store_jobs_1, behind a
-- first row without an id. What its keys made a duplicate counts as missed. No row either while somebody holds the schedule
-- or one of the keys: other schedules are due, too, and the next round comes within a second.
-- Lock: its row FOR UPDATE SKIP LOCKED, then those of store_jobs_1 for 50 ms at most. Index: schedule_pkey.
-- Differs: SQLite has one writer.
create function {schema}.fire_schedule_1(
    p_name text, p_expected timestamptz, p_next_at timestamptz, p_last_at timestamptz, p_specs jsonb, p_args bytea[],
    p_missed bigint, p_now timestamptz
) returns table (id bigint, run_at timestamptz, outcome text)
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan set lock_timeout = '50ms' as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_ids bigint[];
    v_run_at timestamptz[];
    v_outcomes text[];
begin
    perform require_read_committed_1();
    perform 1 from schedule s where s.name = p_name and s.next_at = p_expected and not s.paused for update skip locked;
    if not found then
        return;
    end if;
    begin
        select array_agg(s.id order by s.place), array_agg(s.run_at order by s.place), array_agg(s.outcome order by s.place)
          into v_ids, v_run_at, v_outcomes from store_jobs_1(p_specs, p_args, true, v_now) s;
    exception when lock_not_available or deadlock_detected then
        return;
    end;
    update schedule s
       set next_at = greatest(s.next_at, p_next_at), last_at = p_last_at,
           last_id = coalesce(v_ids[cardinality(v_ids)], s.last_id),
           fired = s.fired + (select count(*) from unnest(v_outcomes) o where o = 'created'),
           missed = s.missed + p_missed + (select count(*) from unnest(v_outcomes) o where o <> 'created'),
           failure = null, failed_at = null, failures = 0
     where s.name = p_name;
    return query
    select null::bigint, null::timestamptz, null
     union all
    (select u.id, u.run_at, case u.outcome when 'created' then 'created' else 'duplicate' end
       from unnest(v_ids, v_run_at, v_outcomes) with ordinality as u (id, run_at, outcome, place) order by u.place);
end
$$;
