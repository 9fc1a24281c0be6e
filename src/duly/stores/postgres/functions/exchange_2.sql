-- One round trip of a worker: applies ends, claims more, tells wishes. Claims nothing when the worker row is gone. Ends come
-- apart: p_done_* for apply_completions_2 (only with p_own), the others for apply_ends_2.
-- Claims at most p_most jobs, lane by lane, from each in order of (priority, position): ready -> running. Expired and stale ones
-- become skipped, those of tasks that the worker does not know, or that are paused, become blocked; none of them counts. A scan
-- starts behind the dead entries that the caller has met before (jumps, NULL for none), but for one sweep a second of the fleet,
-- which finds what was committed late behind them. Each pass over a lane ends with a row of kind `lane`. All in one function:
-- handing the rows on from another one costs as much as writing them.
-- Lock: own worker row FOR KEY SHARE, then claimed, then ready rows FOR UPDATE SKIP LOCKED, which are never updated, so that a
-- locked ctid cannot move; keys as free_unique_1. Index: worker_pkey, those of apply_completions_2 and apply_ends_2, ready_pkey,
-- job_pkey; with extras unique_key_id, newest_pkey, step_pkey. Differs: SQLite has one writer and no dead entries.
create function {schema}.exchange_2(
    p_incarnation bigint, p_done_ids bigint[], p_done_elapsed float8[], p_done_results bytea[],
    p_ids bigint[], p_runs int[], p_events text[], p_states text[], p_failed int[], p_lost int[], p_interrupted int[],
    p_snoozed int[], p_delays float8[], p_results bytea[], p_reasons text[], p_notes text[], p_error_types text[],
    p_error_messages text[], p_tracebacks text[], p_fingerprints text[], p_elapsed float8[],
    p_cursor_ids bigint[], p_cursor_runs int[], p_cursor_names text[], p_cursor_positions bigint[],
    p_queues text[], p_lanes bigint[], p_caps int[], p_sweeps boolean[], p_most int, p_unparked bigint[],
    p_jump_lanes bigint[], p_jump_from int[], p_jump_pos bigint[], p_jump_to bigint[], p_own boolean, p_now timestamptz
) returns setof {schema}.exchanged_2
language plpgsql security definer
set search_path = {schema}, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_known jsonb;
    v_stale boolean;
    v_paused text[];
    v_paused_tasks bigint[];
    v_wanted int := p_most;
    v_lost bigint[];
    v_lane bigint;
    v_began timestamptz;
    v_swept boolean;
    v_top bigint;
    v_from int[];
    v_pos bigint[];
    v_to bigint[];
    v_left int;
    v_rows bigint;
    v_claimed int;
    v_wished boolean;
    v_row {schema}.exchanged_2;
begin
    if p_own then
        if current_setting('transaction_isolation') <> 'read committed' then
            perform require_read_committed_1();
        end if;
        select w.known || '{}', w.progress_at < v_now - w.heartbeat into v_known, v_stale
          from worker w where w.incarnation = p_incarnation for key share;
        if v_stale then
            update worker set progress_at = v_now where incarnation = p_incarnation;
        end if;
    end if;
    -- Wishes are few: they stand only for jobs that were running when a cancel came.
    v_wished := p_own and exists (select 1 from wish);
    if cardinality(p_done_ids) > 0 then
        v_lost := apply_completions_2(p_incarnation, p_done_ids, p_done_elapsed, p_done_results, v_wished, v_now);
        if v_lost is not null then
            return query
            select 'lost', null::int, u.id, 1, null::int, null::bigint, null::int[], null::int, null::interval,
                   null::timestamptz, null, null, null::text[], null, null::bytea, null::smallint, null
              from unnest(v_lost) as u (id);
        end if;
    end if;
    if cardinality(p_ids) > 0 then
        if cardinality(p_cursor_ids) > 0 then
            perform keep_cursors_1(p_incarnation, p_cursor_ids, p_cursor_runs, p_cursor_names, p_cursor_positions);
        end if;
        return query
        select 'lost', null::int, a.id, a.run, null::int, null::bigint, null::int[], null::int, null::interval,
               null::timestamptz, null, null, null::text[], null, null::bytea, null::smallint, null
          from apply_ends_2(array_fill(p_incarnation, array[cardinality(p_ids)]), p_ids, p_runs, p_events, p_states, p_failed,
                            p_lost, p_interrupted, p_snoozed, p_delays, p_results, p_reasons, p_notes, p_error_types,
                            p_error_messages, p_tracebacks, p_fingerprints, p_elapsed, p_own, v_now) a;
    end if;
    if v_wished then
        return query
        select 'wish', null::int, w.id, null::int, null::int, null::bigint, null::int[], null::int, null::interval,
               null::timestamptz, null, null, null::text[], null, null::bytea, null::smallint, null
          from wish w cross join lateral (
            select 1 from claimed c where c.incarnation = p_incarnation and c.id = w.id offset 0) held;
    end if;
    if v_known is null or v_wanted <= 0 then
        return;
    end if;
    select array_agg(p.target), array_agg(p.key) filter (where p.target like 'task:%') into v_paused, v_paused_tasks
      from pause p where p.until is null or p.until > v_now;
    if cardinality(p_unparked) > 0 then
        for v_row in select * from claim_parked_2(p_incarnation, v_known, p_queues, p_lanes, p_caps, v_paused,
                                                  coalesce(v_paused_tasks, '{}'), v_wanted, p_unparked, v_now) loop
            return next v_row;
            v_wanted := v_wanted - 1;
            p_caps[v_row.place] := p_caps[v_row.place] - 1;
        end loop;
        v_row.kind := 'now';
        v_row.enqueued_at := v_now;
        return next v_row;
    end if;
    for v_place in 1 .. cardinality(p_lanes) loop
        exit when v_wanted <= 0;
        continue when 'queue:' || p_queues[v_place] = any(v_paused);
        v_lane := p_lanes[v_place];
        v_left := least(p_caps[v_place], v_wanted);
        v_began := clock_timestamp();
        v_swept := p_sweeps[v_place] and sweep_due_1('lane:' || v_lane, 1000);
        v_from := null;
        if not v_swept and p_jump_lanes is not null then
            select array_agg(j.low), array_agg(j.pos), array_agg(j.high) into v_from, v_pos, v_to
              from unnest(p_jump_lanes, p_jump_from, p_jump_pos, p_jump_to) as j (lane, low, pos, high) where j.lane = v_lane;
        end if;
        if v_from is null then
            v_from := '{-2147483648}';
            v_pos := '{-1}';
            v_to := '{2147483648}';
        end if;
        while v_left > 0 loop
            v_top := (select s.last_value from pos s);
            return query
            with picked as materialized (
                select x.* from unnest(v_from, v_pos, v_to) as s (low, pos, high) cross join lateral (
                    select r.ctid as tid, r.id, r.task, r.priority, r.pos, r.run + 1 as run, r.failed, r.lost, r.interrupted,
                           r.snoozed, r.expires_at
                      from ready r
                     where r.queue = v_lane and r.tenant = 0 and (r.priority, r.pos) > (s.low, s.pos) and r.priority < s.high
                     order by r.priority, r.pos limit v_left for update skip locked) x
                 limit v_left
            ), gone as (
                delete from ready where ctid = any(array(select p.tid from picked p))
            ), taken as materialized (
                select p.*, j.queue_key, j.queue, j.task as task_name, j.tenant, j.tags, j.correlation_id, j.attempts, j.timeout,
                       j.enqueued_at, j.extras, j.unique_live, j.trigger,
                       case when octet_length(j.args) <= 8192 then j.args end as args,
                       (v_known ->> p.task::text)::float8 * interval '1 second' as time_to_run,
                       case when p.expires_at <= v_now then 'expired'
                            when p.task = any(v_paused_tasks) then 'paused'
                            when not v_known ? p.task::text then 'unknown'
                            when j.extras & 8 <> 0 and exists (
                                select 1 from newest n where n.key = j.unique_key and n.version > j.version and n.until > v_now)
                                then 'stale' end as passed
                  from picked p cross join lateral (
                    select j.queue_key, j.queue, j.task, j.tenant, j.tags, j.correlation_id, j.attempts, j.timeout, j.enqueued_at,
                           j.args, j.extras, j.unique_key, j.unique_live, j.version, j.trigger
                      from job j where j.id = p.id offset 0) j
            ), running as (
                insert into claimed (incarnation, id, queue, task, claimed_at, deadline, run, priority, failed, lost, interrupted,
                                     snoozed, expires_at, enqueued_at, queue_name, task_name, tenant, correlation_id, extras)
                select p_incarnation, t.id, v_lane, t.task, v_now, v_now + coalesce(t.timeout, t.time_to_run), t.run, t.priority,
                       t.failed, t.lost, t.interrupted, t.snoozed, t.expires_at, t.enqueued_at, t.queue, t.task_name, t.tenant,
                       t.correlation_id,
                       -- A key of scope queued goes here and now, or is free and the sweep's: its end need not look for it.
                       case when t.unique_live then t.extras else t.extras & ~4::smallint end
                  from taken t where t.passed is null
            ), parked as (
                insert into blocked (id, task, queue, pos, since, cause, priority, run, failed, lost, interrupted, snoozed,
                                     expires_at)
                select t.id, t.task, v_lane, t.pos, v_now, case t.passed when 'unknown' then 1 else 2 end, t.priority, t.run - 1,
                       t.failed, t.lost, t.interrupted, t.snoozed, t.expires_at
                  from taken t where t.passed in ('unknown', 'paused')
            ), skipped as (
                insert into finished (id, queue_key, enqueued_at, finished_at, run, failed, lost, interrupted, snoozed,
                                      status, queue, task, tenant, correlation_id, reason)
                select t.id, t.queue_key, t.enqueued_at, v_now, t.run - 1, t.failed, t.lost, t.interrupted, t.snoozed,
                       'skipped', t.queue, t.task_name, t.tenant, t.correlation_id, t.passed
                  from taken t where t.passed in ('expired', 'stale')
            ), freed as (
                delete from unique_key where ctid = any(array(
                    select x.tid from taken t cross join lateral (
                        select k.ctid as tid from unique_key k
                         where k.id = t.id for update skip locked) x
                     where t.extras & 4 <> 0 and (t.passed is not null or not t.unique_live)
                       and (t.passed is null or t.passed in ('expired', 'stale'))))
            )
            select null, v_place, t.id, t.run, t.priority, t.pos,
                   case when t.failed <> 0 or t.lost <> 0 or t.interrupted <> 0 or t.snoozed <> 0
                        then array[t.failed, t.lost, t.interrupted, t.snoozed] end,
                   t.attempts, t.timeout, t.enqueued_at, t.task_name, nullif(t.tenant, ''), t.tags, t.correlation_id, t.args,
                   case when t.run > 1 and (select true from step s where s.id = t.id limit 1) then t.extras | 32::smallint
                        else t.extras end, t.trigger
              from taken t where t.passed is null
             union all
            select 'lane', v_place, v_top, c.taken, l.priority, l.pos,
                   array[least(extract(epoch from clock_timestamp() - v_began) * 1e6, 2147483647)::int, v_swept::int, v_left],
                   null, null, v_now, null, null, null, null, null, null, null
              from (select count(*)::int as taken from picked) c
              left join (select p.priority, p.pos from picked p order by p.priority desc, p.pos desc limit 1) l on true
             union all
            -- All wanted were taken, and some of them passed over: the number of rows says so, as nothing else gets out of here.
            select 'more', v_place, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null
              from generate_series(0, v_left)
             where (select count(*) = v_left and count(t.passed) > 0 from taken t);
            get diagnostics v_rows = row_count;
            v_claimed := case when v_rows > v_left + 1 then v_rows - v_left - 2 else v_rows - 1 end;
            v_wanted := v_wanted - v_claimed;
            exit when v_rows <= v_left + 1;
            v_left := v_left - v_claimed;
        end loop;
        if v_swept then
            perform sweep_done_1('lane:' || v_lane, v_began);
        end if;
    end loop;
end
$$;
