-- One round trip of a worker: applies ends, claims more, tells wishes. Claims nothing when the worker row is gone. Ends come
-- apart: p_done_* for apply_completions_3 (only with p_own), the others for apply_ends_3.
-- Claims at most p_most jobs, lane by lane, from each in order of (priority, position): ready -> running. Expired and stale ones
-- become skipped, those of tasks that the worker does not know, or that are paused, become blocked; none of them counts. What has
-- an ordering key or takes limits is set aside likewise and decided in the next statements (admit_1); what was freed before
-- goes first (claim_freed_1). A scan starts behind the dead entries that the caller has met before (jumps, NULL for none), but for
-- one sweep a second of the fleet, which finds what was committed late behind them. Each pass over a lane ends with a row of
-- kind `lane`. All in one function: handing the rows on from another one costs as much as writing them.
-- Lock: own worker row FOR KEY SHARE, then claimed, then ready rows FOR UPDATE SKIP LOCKED, which are never updated, so that a
-- locked ctid cannot move; keys as free_unique_1. Index: worker_pkey, those of apply_completions_3 and apply_ends_3, ready_pkey,
-- job_pkey; with extras unique_key_id, newest_pkey, step_pkey. Differs: SQLite has one writer and no dead entries.
create function {schema}.exchange_3(
    p_incarnation bigint, p_done_ids bigint[], p_done_elapsed float8[], p_done_results bytea[],
    p_ids bigint[], p_runs int[], p_events text[], p_states text[], p_failed int[], p_lost int[], p_interrupted int[],
    p_snoozed int[], p_delays float8[], p_results bytea[], p_reasons text[], p_notes text[], p_error_types text[],
    p_error_messages text[], p_tracebacks text[], p_fingerprints text[], p_elapsed float8[],
    p_cursor_ids bigint[], p_cursor_runs int[], p_cursor_names text[], p_cursor_positions bigint[],
    p_queues text[], p_lanes bigint[], p_caps int[], p_sweeps boolean[], p_most int, p_unparked bigint[],
    p_jump_lanes bigint[], p_jump_from int[], p_jump_pos bigint[], p_jump_to bigint[], p_chain int,
    p_fair boolean[], p_reserved int[], p_last bigint[], p_rest int[], p_given bigint[],
    p_asked int[], p_aged int[], p_own boolean, p_now timestamptz
) returns setof {schema}.exchanged_3
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
    v_tenants bigint[];
    v_most int[];
    v_left int;
    v_rows bigint;
    v_wished boolean;
    v_due timestamptz;
    v_watch bigint[];
    v_waited bigint[];
    v_bound bigint[];
    v_bounded text[];
    v_blocks boolean;
    v_lanes bigint[];
    v_limit bigint;
    v_room int;
    -- When to come back to a queue in which another claim was.
    v_again timestamptz;
    v_mark smallint;
    v_aged int;
    v_special boolean;
    v_turn record;
    v_served record;
    v_share int;
    v_shared int;
    v_total int;
    v_ask int;
    v_low int[];
    v_at bigint[];
    v_high bigint[];
    v_started int;
    v_kind text;
    v_oldest record;
    v_staged bigint[];
    v_set_aside int;
    v_tries int;
    v_turns boolean;
    v_row {schema}.exchanged_3;
begin
    if p_own then
        if current_setting('transaction_isolation') <> 'read committed' then
            perform require_read_committed_1();
        end if;
        select w.known || '{}', w.progress_at < v_now - w.heartbeat, w.bound_tasks, w.bound_queues
          into v_known, v_stale, v_bound, v_bounded
          from worker w where w.incarnation = p_incarnation for key share;
        if v_stale then
            update worker set progress_at = v_now where incarnation = p_incarnation;
        end if;
    end if;
    -- Wishes are few: they stand only for jobs that were running when a cancel came.
    v_wished := p_own and exists (select 1 from wish);
    if cardinality(p_done_ids) > 0 then
        v_lost := apply_completions_3(p_incarnation, p_done_ids, p_done_elapsed, p_done_results, v_wished, v_now);
        if v_lost is not null then
            return query
            select 'lost', null::int, u.id, 1, null::int, null::bigint, null::int[], null::int, null::interval,
                   null::timestamptz, null, null, null::text[], null, null::bytea, null::smallint, null, null
              from unnest(v_lost) as u (id);
        end if;
    end if;
    if cardinality(p_ids) > 0 then
        if cardinality(p_cursor_ids) > 0 then
            perform keep_cursors_1(p_incarnation, p_cursor_ids, p_cursor_runs, p_cursor_names, p_cursor_positions);
        end if;
        return query
        select 'lost', null::int, a.id, a.run, null::int, null::bigint, null::int[], null::int, null::interval,
               null::timestamptz, null, null, null::text[], null, null::bytea, null::smallint, null, null
          from apply_ends_3(array_fill(p_incarnation, array[cardinality(p_ids)]), p_ids, p_runs, p_events, p_states, p_failed,
                            p_lost, p_interrupted, p_snoozed, p_delays, p_results, p_reasons, p_notes, p_error_types,
                            p_error_messages, p_tracebacks, p_fingerprints, p_elapsed, p_own, v_now) a;
    end if;
    if v_wished then
        return query
        select 'wish', null::int, w.id, null::int, null::int, null::bigint, null::int[], null::int, null::interval,
               null::timestamptz, null, null, null::text[], null, null::bytea, null::smallint, null, null
          from wish w cross join lateral (
            select 1 from claimed c where c.incarnation = p_incarnation and c.id = w.id offset 0) held;
    end if;
    if v_known is null or v_wanted <= 0 then
        return;
    end if;
    select array_agg(p.target), array_agg(p.key) filter (where p.target like 'task:%'),
           -- As next_word_1.
           coalesce(
               (select r.due from released r
                 where r.due = '-infinity' and r.number > coalesce((select s.position from sweep s where s.name = 'words'), 0)
                 order by r.due, r.number limit 1),
               (select r.due from released r
                 where r.due > coalesce((select s.last_at from sweep s where s.name = 'words'), '-infinity')
                 order by r.due, r.number limit 1))
      into v_paused, v_paused_tasks, v_due
      from pause p where p.until is null or p.until > v_now;
    -- From here on a plain queue meets as few expressions as can be: each costs as much as reading a row.
    if v_bounded is distinct from '{}' or p_fair is not null then
        if v_bounded is null then
            -- A worker of the previous release has not been told.
            select b.tasks, b.queues into v_bound, v_bounded from bounds_1() b;
        end if;
        v_lanes := array(select l.lane from unnest(p_lanes, p_queues, p_fair) as l (lane, queue, fair)
                          where l.fair or l.queue = any(v_bounded));
    end if;
    -- Lanes with a bound of their own, turns, a share for the oldest: in such a call every lane goes the longer way.
    v_special := v_lanes is not null or p_aged is not null;
    while v_due <= v_now and v_wanted > 0 loop
        for v_row in select * from claim_freed_1(p_incarnation, v_known, v_paused, v_paused_tasks, p_queues, p_lanes, v_lanes,
                                                 p_caps, v_wanted, p_chain, v_now) loop
            if v_row.kind = 'watch' then
                v_watch := v_watch || v_row.id;
                continue;
            end if;
            return next v_row;
            continue when v_row.kind is not null;
            v_wanted := v_wanted - 1;
            p_caps[v_row.place] := p_caps[v_row.place] - 1;
        end loop;
        v_due := coalesce(next_word_1(), 'infinity');
        v_tries := coalesce(v_tries, 0) + 1;
        exit when v_tries = 10;
    end loop;
    if cardinality(p_unparked) > 0 then
        for v_row in select * from claim_parked_3(p_incarnation, v_known, p_queues, p_lanes, p_caps, v_paused,
                                                  coalesce(v_paused_tasks, '{}'), v_lanes, v_wanted, p_unparked, v_now) loop
            return next v_row;
            v_wanted := v_wanted - 1;
            p_caps[v_row.place] := p_caps[v_row.place] - 1;
        end loop;
    end if;
    for v_place in 1 .. cardinality(p_lanes) loop
        exit when v_wanted <= 0;
        continue when 'queue:' || p_queues[v_place] = any(v_paused);
        v_lane := p_lanes[v_place];
        v_left := least(p_caps[v_place], v_wanted);
        if v_special then
            v_limit := null;
            v_mark := null;
            v_blocks := null;
            v_turns := false;
            if v_lane = any(v_lanes) then
                v_share := null;
                v_total := 0;
                if p_queues[v_place] = any(v_bounded) then
                    v_blocks := exists (select 1 from limit_policy l where l.queue = p_queues[v_place] and l.name like 'block:%');
                    if exists (select 1 from limit_policy l where l.name = 'queue:' || p_queues[v_place]) then
                        select o.key, o.room, least(v_again, o.again) into v_limit, v_room, v_again
                          from open_lane_1(p_queues[v_place], v_now) o;
                        v_due := coalesce(v_due, '-infinity');
                        v_left := least(v_left, v_room);
                    end if;
                end if;
                v_turns := coalesce(p_fair[v_place], false);
                v_mark := case when v_limit is not null or v_turns then 256 end;
                v_shared := p_caps[v_place] - coalesce(p_reserved[v_place], 0);
            end if;
        end if;
        v_began := clock_timestamp();
        v_swept := p_sweeps[v_place] and sweep_due_1('lane:' || v_lane, 1000);
        v_low := null;
        if not v_swept and p_jump_lanes is not null then
            select array_agg(j.low), array_agg(j.pos), array_agg(j.high) into v_low, v_at, v_high
              from unnest(p_jump_lanes, p_jump_from, p_jump_pos, p_jump_to) as j (lane, low, pos, high) where j.lane = v_lane;
        end if;
        if v_low is null then
            v_low := '{-2147483648}';
            v_at := '{-1}';
            v_high := '{2147483648}';
        end if;
        if v_special then
            v_aged := case when v_left <= 0 or p_aged is null then 0 when v_left = p_asked[v_place] then p_aged[v_place]
                           else aged_1(p_given[v_place], v_left) end;
            v_from := v_low;
            v_pos := v_at;
            v_to := v_high;
        end if;
        while v_left > 0 loop
            if v_special then
                v_kind := null;
                v_ask := null;
                v_tenants := null;
                v_most := null;
                v_low := v_from;
                v_at := v_pos;
                v_high := v_to;
                if v_turns then
                    select t.* into v_turn from turn_1(
                        p_queues[v_place], v_lane, coalesce(p_last[v_place], -9223372036854775808), coalesce(p_rest[v_place], 0),
                        v_left, v_share, v_shared, p_reserved[v_place] > 0, v_now) t;
                    v_due := coalesce(v_due, '-infinity');
                    exit when v_turn.tenants = '{}';
                    v_kind := 'fair';
                    v_share := v_turn.share;
                    v_tenants := v_turn.tenants;
                    v_most := v_turn.most;
                    v_low := array_fill(-2147483648, array[cardinality(v_tenants)]);
                    v_at := array_fill(-1::bigint, array[cardinality(v_tenants)]);
                    v_high := array_fill(2147483648::bigint, array[cardinality(v_tenants)]);
                end if;
                if v_aged > 0 and v_turns and v_most[1] < v_left then
                    -- Of what the tenant may have, not of all that was asked for.
                    v_aged := aged_1(p_given[v_place], v_most[1]);
                end if;
                if v_aged > 0 then
                    select o.* into v_oldest
                      from oldest_1(v_lane, coalesce(v_tenants[1], 0), least(v_aged, v_most[1]), v_from, v_pos, v_to) o;
                    v_aged := 0;
                    if v_oldest.low is not null then
                        v_kind := 'aged';
                        v_tenants := array_fill(coalesce(v_tenants[1], 0), array[cardinality(v_oldest.low)]);
                        v_low := v_oldest.low;
                        v_at := v_oldest.pos;
                        v_high := v_oldest.high;
                        v_most := v_oldest.most;
                        v_ask := (select sum(m) from unnest(v_most) m);
                    end if;
                end if;
            end if;
            v_top := (select s.last_value from pos s);
            return query
            with picked as materialized (
                select x.* from unnest(v_low, v_at, v_high, v_tenants, v_most) as s (low, pos, high, lane, most)
                 cross join lateral (
                    select r.ctid as tid, r.id, r.tenant as lane, r.task, r.priority, r.pos, r.run + 1 as run, r.failed, r.lost,
                           r.interrupted, r.snoozed, r.expires_at, r.limited_at
                      from ready r
                     where r.queue = v_lane and r.tenant = coalesce(s.lane, 0) and (r.priority, r.pos) > (s.low, s.pos)
                       and r.priority < s.high
                     order by r.priority, r.pos limit coalesce(s.most, v_left) for update skip locked) x
                 limit coalesce(v_ask, v_left)
            ), gone as (
                delete from ready where ctid = any(array(select p.tid from picked p))
            ), taken as materialized (
                select p.*, j.queue_key, j.queue, j.task as task_name, j.tenant, j.tags, j.correlation_id, j.attempts, j.timeout,
                       j.enqueued_at, j.extras, j.unique_live, j.trigger, j.ordering_key, j.ordering,
                       case when octet_length(j.args) <= 8192 then j.args end as args,
                       (v_known ->> p.task::text)::float8 * interval '1 second' as time_to_run,
                       -- What has an ordering key has a place in it to give back, what is in a batch has to be counted there.
                       case when p.expires_at <= v_now and j.extras & 192 = 0 then 'expired'
                            when p.task = any(v_paused_tasks) then 'paused'
                            when not v_known ? p.task::text then 'unknown'
                            when j.extras & 64 <> 0 or p.task = any(v_bound) or v_blocks
                                 or j.extras & 128 <> 0 and (p.expires_at <= v_now or j.extras & 8 <> 0) then 'bound'
                            when j.extras & 8 <> 0 and exists (
                                select 1 from newest n where n.key = j.unique_key and n.version > j.version and n.until > v_now)
                                then 'stale' end as passed
                  from picked p cross join lateral (
                    select j.queue_key, j.queue, j.task, j.tenant, j.tags, j.correlation_id, j.attempts, j.timeout, j.enqueued_at,
                           j.args, j.extras, j.unique_key, j.unique_live, j.version, j.trigger, j.ordering_key, j.ordering
                      from job j where j.id = p.id offset 0) j
            ), running as (
                insert into claimed (incarnation, id, queue, task, claimed_at, deadline, run, priority, failed, lost, interrupted,
                                     snoozed, expires_at, enqueued_at, queue_name, task_name, tenant, correlation_id, extras)
                select p_incarnation, t.id, v_lane, t.task, v_now, v_now + coalesce(t.timeout, t.time_to_run), t.run, t.priority,
                       t.failed, t.lost, t.interrupted, t.snoozed, t.expires_at, t.enqueued_at, t.queue, t.task_name, t.tenant,
                       t.correlation_id,
                       -- A key of scope queued goes here and now, or is free and the sweep's: its end need not look for it.
                       case when t.unique_live then t.extras else t.extras & ~4::smallint end | coalesce(v_mark, 0::smallint)
                  from taken t where t.passed is null
            ), parked as (
                insert into blocked (id, task, queue, tenant, pos, since, cause, gate, priority, run, failed, lost, interrupted,
                                     snoozed, expires_at)
                select t.id, t.task, v_lane, t.lane, t.pos, coalesce(t.limited_at, v_now),
                       case t.passed when 'unknown' then 1 when 'paused' then 2 else case when t.extras & 64 <> 0 then 3 else 4 end
                       end,
                       case when t.passed = 'bound' then coalesce(t.ordering, first_limit_1(t.task)) else 0 end,
                       t.priority, t.run - 1, t.failed, t.lost, t.interrupted, t.snoozed, t.expires_at
                  from taken t where t.passed in ('unknown', 'paused', 'bound')
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
                        else t.extras end, t.trigger, t.ordering_key
              from taken t where t.passed is null
             union all
            select coalesce(v_kind, 'lane'), v_place, v_top, c.taken, l.priority, l.pos,
                   array[least(extract(epoch from clock_timestamp() - v_began) * 1e6, 2147483647)::int, v_swept::int,
                         coalesce(v_ask, v_left)],
                   null, null, v_now, null, null, null,
                   -- Only this way do the jobs that were set aside get out of here.
                   case when c.bound is not null then left(set_config('duly.set_aside', c.bound || ';' || coalesce(c.waited, ''), true), 0) end, null, null, null,
                   null
              from (select count(*)::int as taken, string_agg(t.id::text, ',') filter (where t.passed = 'bound') as bound,
                           string_agg(t.id::text, ',') filter (where t.passed = 'bound' and t.limited_at is not null) as waited
                      from taken t) c
              left join (select p.priority, p.pos from picked p order by p.priority desc, p.pos desc limit 1) l on true
             union all
            -- All wanted were taken, and some of them passed over: the number of rows says so, as nothing else gets out of here.
            select 'more', v_place, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null
              from generate_series(0, coalesce(v_ask, v_left))
             where (select count(*) = coalesce(v_ask, v_left) and count(t.passed) > 0 from taken t);
            get diagnostics v_rows = row_count;
            v_started := case when v_rows > coalesce(v_ask, v_left) + 1 then v_rows - coalesce(v_ask, v_left) - 2
                              else v_rows - 1 end;
            v_wanted := v_wanted - v_started;
            if current_setting('duly.set_aside', true) <> '' then
                v_staged := string_to_array(split_part(current_setting('duly.set_aside'), ';', 1), ',')::bigint[];
                v_waited := string_to_array(split_part(current_setting('duly.set_aside'), ';', 2), ',')::bigint[];
                perform set_config('duly.set_aside', '', true);
                v_set_aside := coalesce(v_set_aside, 0) + cardinality(v_staged);
                v_due := coalesce(v_due, '-infinity');
                p_caps[v_place] := v_left - v_started;
                -- What follows in a fair queue is its tenant's, which has had its share of this turn, and of its limit.
                for v_row in select * from admit_1(p_incarnation, v_known, v_paused_tasks, p_lanes, p_caps, v_wanted,
                                                   case when p_fair[v_place] then 1 else p_chain end, v_staged, v_staged,
                                                   v_waited, v_mark is not null, v_now) loop
                    return next v_row;
                    v_started := v_started + 1;
                    v_wanted := v_wanted - 1;
                    p_caps[v_place] := p_caps[v_place] - 1;
                end loop;
            end if;
            if v_special then
                v_total := v_total + v_started;
                if v_turns then
                    select s.* into v_served from serve_1(
                        p_incarnation, p_queues[v_place], v_lane,
                        case v_kind when 'aged' then v_turn.tenants[1:1] else v_turn.tenants end,
                        case v_kind when 'aged' then array[v_ask] else v_turn.most end, v_turn.quanta, v_started,
                        case v_kind when 'aged' then 0 else v_left end, v_now) s;
                    v_shared := v_shared - v_served.spent;
                    p_last[v_place] := coalesce(v_served.last, p_last[v_place]);
                    p_rest[v_place] := coalesce(v_served.rest, p_rest[v_place]);
                end if;
            end if;
            exit when v_kind is null and v_rows <= coalesce(v_ask, v_left) + 1 or v_kind = 'fair' and v_started = 0
                or v_set_aside >= 2000;
            v_left := least(v_left - v_started, v_wanted);
        end loop;
        if v_special then
            if v_limit is not null and v_total > 0 then
                perform hold_lane_1(p_incarnation, v_limit, v_lane, v_total, v_now);
            end if;
            if v_turns and v_total > 0 then
                return next row('turn', v_place, p_last[v_place], p_rest[v_place], null, null, null, null, null, null, null, null,
                                null, null, null, null, null, null)::{schema}.exchanged_3;
            end if;
        end if;
        if v_swept then
            perform sweep_done_1('lane:' || v_lane, v_began);
        end if;
    end loop;
    if v_due is not null or cardinality(p_unparked) > 0 then
        if v_watch is not null then
            perform watch_limits_1(v_watch, v_now);
        end if;
        v_row := row('now', null, null, null, null, null, null, null, null, v_now, null, null, null, null, null, null, null, null);
        if v_wanted > 0 then
            v_due := case when v_set_aside >= 2000 then '-infinity' else least(next_word_1(), v_again) end;
            v_row.timeout := case when v_due <= v_now then '0' else v_due - v_now end;
        end if;
        return next v_row;
    end if;
end
$$;
