-- What bounds jobs beside their place in a queue: ordering keys, limits, fair tenants, overrides.
-- Lock: `job`, `ready`, `scheduled`, `blocked`, `queue` until all is made, whatever they hold; only `blocked` is read whole,
-- about a second for 500,000 jobs in it. New columns have a default, so that a worker of the
-- previous release goes on; at the end, what its functions call is put in terms of the new ones, so that it keeps orders and
-- caps, too.
-- Differs: SQLite has one writer, so that no release of a key or a limit is left to somebody else there.
-- More bits of extras: 64 ordering key, 256 holds of limits (claims only).

-- Ordering keys, limits and tenants.

alter table {schema}.job
    add column ordering_key text,
    -- The keys of (queue, tenant, ordering key) and, in a fair queue, of the tenant.
    add column ordering bigint,
    add column tenant_key bigint;

-- Since when it has waited for a limit, through every try.
alter table {schema}.ready add column limited_at timestamptz;

alter table {schema}.scheduled add column tenant bigint not null default 0;

alter table {schema}.blocked
    add column tenant bigint not null default 0,
    -- What it waits behind: the key of an ordering key or a limit; 0 for causes 1 and 2.
    add column gate bigint not null default 0,
    drop constraint blocked_cause_check,
    -- 3: behind the head of its ordering key; 4: behind a limit.
    add constraint blocked_cause_check check (cause between 1 and 4);
create index blocked_gate on {schema}.blocked (gate, tenant, priority, pos);

alter table {schema}.queue
    add column fair boolean not null default false,
    add column ordering text not null default 'wait',
    add column serialise boolean not null default false,
    add column wait_target interval,
    -- Since when its oldest ready job has waited longer than that, and somebody was told.
    add column late_since timestamptz,
    add column max_depth int,
    add column max_age interval,
    add column when_full text not null default 'reject',
    add column importance int not null default 100;
create index queue_key on {schema}.queue (key);

-- Every live job of an ordering key, and a dead one while it keeps its key. The order of a key is the order of ids.
create table {schema}.keyed (
    key bigint not null,
    id bigint not null,
    -- It has died under the policy pause_key, and its key's head has not been told yet.
    paused boolean not null default false,
    primary key (key, id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = -1,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

create table {schema}.key_head (
    key bigint primary key,
    id bigint,
    queue bigint not null,
    paused boolean not null default false,
    since timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

create table {schema}.limit_policy (
    key bigint primary key,
    name text not null unique,
    max_running int,
    -- Seconds between two starts.
    interval float8,
    burst int,
    weight int,
    breaker jsonb,
    origin text not null,
    -- The queue whose lane it bounds; NULL for limits of jobs.
    queue text
);
create index limit_policy_queue on {schema}.limit_policy (queue);

create table {schema}.task_limit (
    task bigint not null,
    policy bigint not null,
    name text not null,
    argument text,
    primary key (task, policy)
);

create table {schema}.limit_state (
    key bigint primary key,
    name text not null,
    -- The policy that it is an instance of; its own key where it is the only one.
    policy bigint not null,
    tat timestamptz,
    held_until timestamptz,
    held_by text,
    held_reason text,
    next_at timestamptz,
    -- The tenant that was let go on last, of several that wait.
    turn bigint not null default 0,
    breaker_state text,
    breaker_until timestamptz,
    calls bigint not null default 0,
    failures bigint not null default 0,
    window_at timestamptz,
    forced text
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

-- One row per limit and running job. Incarnation 0: kept for a blocked job that is out of patience, or taken by no job.
create table {schema}.hold (
    key bigint not null,
    id bigint not null,
    incarnation bigint not null,
    until timestamptz,
    primary key (key, id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = -1,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
create index hold_id on {schema}.hold (id);

-- What somebody must look at again, now (due is -infinity) or from a time on: an ordering key (kind 1) or a limit (2) that was
-- freed or opens then, or batches (3, key 0).
create table {schema}.released (
    due timestamptz not null,
    number bigint generated always as identity,
    kind smallint not null,
    key bigint not null,
    primary key (due, number)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_insert_threshold = -1,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

create table {schema}.tenant (
    key bigint not null unique,
    name text primary key,
    weight int not null,
    max_running int,
    interval float8,
    burst int,
    by text not null,
    reason text not null,
    at timestamptz not null
);

-- What of all this concerns its claims; NULL for workers of the previous release.
alter table {schema}.worker
    add column bound_tasks bigint[],
    add column bound_queues text[];

create table {schema}.override (
    id bigint generated always as identity primary key,
    target text not null,
    key bigint not null,
    kind text not null check (kind in ('limit', 'block')),
    value jsonb not null,
    by text not null,
    reason text not null,
    at timestamptz not null,
    until timestamptz,
    lifted_at timestamptz
);
create index override_key on {schema}.override (key, id);

-- Back pressure.

-- How full a queue was when it was counted last: once a second for all its producers.
create table {schema}.queue_fill (
    queue bigint primary key,
    at timestamptz not null,
    -- It was counted to one more than this.
    most int not null,
    depth int not null,
    oldest_at timestamptz,
    out_per_s float8,
    -- Seconds of the count.
    took float8 not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

-- Jobs that a full queue or store has turned away since a moment of the last hour: 1 refused, 2 shed.
create table {schema}.turned_away (
    queue bigint not null,
    kind int not null check (kind in (1, 2)),
    jobs bigint not null,
    since timestamptz not null,
    at timestamptz not null,
    primary key (queue, kind)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

-- What duly's relations took when they were measured: once a second for all who ask, kept for ten minutes.
create table {schema}.store_use (
    at timestamptz primary key,
    -- In use, and in files.
    used bigint not null,
    files bigint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

-- Batches. More bits of extras: 128 member of a batch. Their follow-ups stand in follow, under ids of the one sequence.

alter table {schema}.job add column batch bigint;
-- Beside the job: an index of it would read the whole table while nobody may touch that.
create table {schema}.batch_member (
    batch bigint not null,
    id bigint not null,
    primary key (batch, id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = -1,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

create table {schema}.batch (
    id bigint primary key,
    name text not null,
    state text not null check (state in ('open', 'running', 'dead', 'completed', 'cancelled')),
    parent bigint,
    -- Members, and how they ended, as far as they are folded.
    total int not null default 0,
    completed int not null default 0,
    skipped int not null default 0,
    cancelled int not null default 0,
    shed int not null default 0,
    dead int not null default 0,
    -- How it counts in the batch around it; NULL while it has not ended there.
    told text,
    -- Its first death was followed.
    mourned boolean not null default false,
    created_at timestamptz not null,
    closed_at timestamptz,
    finished_at timestamptz,
    reason text
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
create index batch_parent on {schema}.batch (parent) where parent is not null;
create index batch_finished on {schema}.batch (finished_at) where finished_at is not null;

-- What has been counted and not folded yet: nobody waits for anybody to count.
create table {schema}.batch_done (
    batch bigint not null,
    n bigint generated always as identity,
    total int not null default 0,
    completed int not null default 0,
    skipped int not null default 0,
    cancelled int not null default 0,
    shed int not null default 0,
    dead int not null default 0,
    primary key (batch, n)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_insert_threshold = -1,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

-- include: functions/tell_batches_1.sql
-- include: functions/count_batch_1.sql
-- include: functions/uncount_batch_1.sql
-- include: functions/follow_spec_2.sql
-- include: functions/settle_batch_1.sql
-- include: functions/finish_batches_1.sql
-- include: functions/open_batch_1.sql
-- include: functions/close_batch_1.sql
-- include: functions/cancel_batch_1.sql
-- include: functions/batches_1.sql
-- include: functions/batch_members_1.sql
-- include: functions/inside_batch_1.sql
-- include: functions/heal_batches_1.sql
-- include: functions/fills_1.sql
-- include: functions/turn_away_1.sql
-- include: functions/pressures_1.sql
-- include: functions/crossings_1.sql
-- include: functions/measure_use_1.sql
-- include: functions/use_1.sql
-- include: functions/uses_1.sql
-- include: functions/ordering_name_1.sql
-- include: functions/argument_1.sql
-- include: functions/waited_gates_1.sql
-- include: functions/bounds_1.sql
-- include: functions/tell_bounds_1.sql
-- include: functions/policy_of_1.sql
-- include: functions/limit_terms_1.sql
-- include: functions/let_go_1.sql
-- include: functions/next_word_1.sql
-- include: functions/mind_words_1.sql
-- include: functions/finish_waiting_3.sql
-- include: functions/insert_jobs_1.sql
-- include: functions/store_jobs_2.sql
-- include: functions/follow_keyed_2.sql
-- include: functions/follow_up_2.sql
-- include: functions/settle_ends_2.sql
-- include: functions/apply_any_ends_3.sql
-- include: functions/apply_ends_3.sql
-- include: functions/apply_completions_3.sql
-- include: functions/forget_jobs_3.sql
-- include: functions/enqueue_3.sql
-- include: functions/exchanged_3.sql
-- include: functions/taking_1.sql
-- include: functions/blocks_1.sql
-- include: functions/limits_of_1.sql
-- include: functions/lock_limits_1.sql
-- include: functions/open_limits_1.sql
-- include: functions/watch_limits_1.sql
-- include: functions/begin_taking_1.sql
-- include: functions/take_1.sql
-- include: functions/finish_taking_1.sql
-- include: functions/lock_keys_1.sql
-- include: functions/key_heads_1.sql
-- include: functions/call_followers_1.sql
-- include: functions/drop_ended_1.sql
-- include: functions/admitted_order_1.sql
-- include: functions/unblock_1.sql
-- include: functions/regate_1.sql
-- include: functions/claim_blocked_1.sql
-- include: functions/admit_1.sql
-- include: functions/next_in_turn_1.sql
-- include: functions/claim_freed_1.sql
-- include: functions/claim_parked_3.sql
-- include: functions/first_limit_1.sql
-- include: functions/aged_1.sql
-- include: functions/oldest_1.sql
-- include: functions/time_lane_1.sql
-- include: functions/open_lane_1.sql
-- include: functions/hold_lane_1.sql
-- include: functions/turn_1.sql
-- include: functions/serve_1.sql
-- include: functions/exchange_3.sql
-- include: functions/promote_2.sql
-- include: functions/unpark_resumed_2.sql
-- include: functions/abandon_unknown_3.sql
-- include: functions/rekey_waiting_2.sql
-- include: functions/heal_keys_1.sql
-- include: functions/heal_limits_1.sql
-- include: functions/unfair_1.sql
-- include: functions/part_lanes_1.sql
-- include: functions/shed_queue_1.sql
-- include: functions/shed_1.sql
-- include: functions/shed_queues_1.sql
-- include: functions/sweep_3.sql
-- include: functions/redrive_3.sql
-- include: functions/reprioritise_2.sql
-- include: functions/run_at_2.sql
-- include: functions/run_now_2.sql
-- include: functions/declare_3.sql
-- include: functions/acquire_1.sql
-- include: functions/give_back_1.sql
-- include: functions/hold_limit_1.sql
-- include: functions/observe_1.sql
-- include: functions/set_breaker_1.sql
-- include: functions/limits_1.sql
-- include: functions/let_on_1.sql
-- include: functions/override_1.sql
-- include: functions/lift_1.sql
-- include: functions/set_plan_1.sql
-- include: functions/keys_1.sql
-- include: functions/tenant_waits_1.sql
-- include: functions/resume_key_1.sql
-- include: functions/lookup_3.sql
-- include: functions/facts_1.sql

-- The interface for SQL takes more. Beside the new one the old one cannot keep its name: a call would fit both.
alter function {schema}.enqueue(text, jsonb, text, int, interval, timestamptz, interval, interval, int, text, text[], text, text,
                                text, text, text, bigint)
    rename to enqueue_before_3;
-- include: functions/enqueue_for_sql_2.sql
create or replace function {schema}.enqueue_before_3(
    task text, args jsonb default '{}', queue text default null, priority int default null, delay interval default null,
    out id bigint, out outcome text, inout run_at timestamptz default null, expires interval default null,
    timeout interval default null, attempts int default null, tenant text default '', tags text[] default null,
    correlation_id text default null, idempotency_key text default null, unique_key text default null,
    unique_scope text default 'queued', on_conflict text default 'return', version bigint default null)
language sql security definer
set search_path = {schema}, pg_temp as $$
    select e.id, e.outcome, e.run_at
      from enqueue($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) e
$$;
-- Rights that somebody gave or took stay. What is bound to the very function, as a view or a body of standard SQL is, keeps the
-- old one, which calls the new one.
do $$
declare
    v_old regprocedure := '{schema}.enqueue_before_3'::regproc::regprocedure;
    v_new regprocedure := '{schema}.enqueue'::regproc::regprocedure;
    v_right record;
begin
    if (select p.proacl is not null from pg_proc p where p.oid = v_old) then
        execute format('revoke all on function %s from public', v_new);
        for v_right in
            select case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end as grantee,
                   case when a.is_grantable then ' with grant option' else '' end as grantable
              from pg_proc p cross join lateral aclexplode(p.proacl) a
             where p.oid = v_old and a.privilege_type = 'EXECUTE' and a.grantee <> p.proowner
        loop
            execute format('grant execute on function %s to %s%s', v_new, v_right.grantee, v_right.grantable);
        end loop;
    end if;
    begin
        execute format('drop function %s', v_old);
    exception when dependent_objects_still_exist then
        null;
    end;
end
$$;

-- Every worker is told what is bounded, also one of the previous release.
create or replace function {schema}.register_1(
    p_host text, p_pid int, p_supervisor text, p_queues text[], p_known jsonb, p_lease float8, p_heartbeat float8, p_slots int,
    p_version text, p_now timestamptz
) returns bigint
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_incarnation bigint := nextval('incarnation');
begin
    insert into worker (incarnation, beat_at, progress_at, pid, slots, started_at, lease, heartbeat, host, supervisor, version,
                        queues, known, bound_tasks, bound_queues)
    values (v_incarnation, v_now, v_now, p_pid, p_slots, v_now, p_lease * interval '1 second',
            p_heartbeat * interval '1 second', p_host, p_supervisor, p_version, p_queues, p_known,
            (select b.tasks from bounds_1() b), (select b.queues from bounds_1() b));
    return v_incarnation;
end
$$;

-- What functions of the previous release call.
create or replace function {schema}.store_jobs_1(p_specs jsonb, p_args bytea[], p_own boolean, p_now timestamptz)
returns table (place int, id bigint, outcome text, run_at timestamptz)
language plpgsql as $$
begin
    return query select s.place, s.id, s.outcome, s.run_at from store_jobs_2(p_specs, p_args, p_own, p_now) s;
end
$$;

create or replace function {schema}.settle_ends_1(p_ids bigint[], p_states text[], p_own boolean, p_now timestamptz)
returns void
language plpgsql as $$
begin
    perform settle_ends_2(p_ids, p_states, p_own, p_now);
end
$$;

create or replace function {schema}.follow_spec_1(p_id bigint, p_spec jsonb) returns jsonb
language plpgsql stable as $$
begin
    return follow_spec_2(p_id, p_spec);
end
$$;

create or replace function {schema}.follow_up_1(p_ids bigint[], p_states text[], p_own boolean, p_now timestamptz) returns void
language plpgsql as $$
begin
    perform follow_up_2(p_ids, p_states, p_own, p_now);
end
$$;

create or replace function {schema}.finish_waiting_2(
    p_ids bigint[], p_runs int[], p_failed int[], p_lost int[], p_interrupted int[], p_snoozed int[], p_status text,
    p_reasons text[], p_notes text[], p_now timestamptz
) returns void
language plpgsql as $$
begin
    perform finish_waiting_3(p_ids, p_runs, p_failed, p_lost, p_interrupted, p_snoozed, p_status, p_reasons, p_notes, p_now);
end
$$;

create or replace function {schema}.forget_jobs_2(p_ids bigint[]) returns void
language plpgsql as $$
begin
    perform forget_jobs_3(p_ids);
end
$$;

create or replace function {schema}.apply_any_ends_2(
    p_incarnations bigint[], p_ids bigint[], p_runs int[], p_events text[], p_states text[],
    p_failed int[], p_lost int[], p_interrupted int[], p_snoozed int[], p_delays float8[], p_results bytea[],
    p_reasons text[], p_notes text[], p_error_types text[], p_error_messages text[], p_tracebacks text[],
    p_fingerprints text[], p_elapsed float8[], p_own boolean, v_now timestamptz
) returns bigint
language plpgsql as $$
begin
    return apply_any_ends_3(
        p_incarnations, p_ids, p_runs, p_events, p_states, p_failed, p_lost, p_interrupted, p_snoozed, p_delays, p_results,
        p_reasons, p_notes, p_error_types, p_error_messages, p_tracebacks, p_fingerprints, p_elapsed, p_own, v_now);
end
$$;

create or replace function {schema}.redrive_2(p_ids bigint[], p_by text, p_reason text, p_priority int, p_now timestamptz)
returns setof bigint
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    return query select redrive_3(p_ids, p_by, p_reason, p_priority, p_now);
end
$$;

create or replace function {schema}.exchange_2(
    p_incarnation bigint, p_done_ids bigint[], p_done_elapsed float8[], p_done_results bytea[],
    p_ids bigint[], p_runs int[], p_events text[], p_states text[], p_failed int[], p_lost int[], p_interrupted int[],
    p_snoozed int[], p_delays float8[], p_results bytea[], p_reasons text[], p_notes text[], p_error_types text[],
    p_error_messages text[], p_tracebacks text[], p_fingerprints text[], p_elapsed float8[],
    p_cursor_ids bigint[], p_cursor_runs int[], p_cursor_names text[], p_cursor_positions bigint[],
    p_queues text[], p_lanes bigint[], p_caps int[], p_sweeps boolean[], p_most int, p_unparked bigint[],
    p_jump_lanes bigint[], p_jump_from int[], p_jump_pos bigint[], p_jump_to bigint[], p_own boolean, p_now timestamptz
) returns setof {schema}.exchanged_2
language plpgsql security definer
set search_path = {schema}, pg_temp as $$
begin
    return query
    -- What came from no lane, or from a tenant's, says nothing of where the live rows of a lane begin.
    select e.kind, e.place, e.id, e.run, e.priority,
           case when e.kind is null and (e.extras & 1024 <> 0 or exists (
                    select 1 from queue q where q.name = p_queues[e.place] and q.fair)) then null else e.pos end,
           e.counts, e.attempts, e.timeout, e.enqueued_at, e.task, e.tenant, e.tags, e.correlation_id, e.args, e.extras, e.trigger
      from exchange_3(
        p_incarnation, p_done_ids, p_done_elapsed, p_done_results, p_ids, p_runs, p_events, p_states, p_failed, p_lost,
        p_interrupted, p_snoozed, p_delays, p_results, p_reasons, p_notes, p_error_types, p_error_messages, p_tracebacks,
        p_fingerprints, p_elapsed, p_cursor_ids, p_cursor_runs, p_cursor_names, p_cursor_positions, p_queues, p_lanes, p_caps,
        p_sweeps, p_most, p_unparked, p_jump_lanes, p_jump_from, p_jump_pos, p_jump_to, 1,
        (select array_agg(coalesce((select q.fair from queue q where q.name = u.queue), false) order by u.place)
           from unnest(p_queues) with ordinality as u (queue, place)),
        null, null, null, null, null, null, p_own, p_now) e
     where e.kind is null or e.kind not in ('aged', 'fair', 'turn', 'batch');
end
$$;
