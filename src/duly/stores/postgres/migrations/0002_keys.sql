-- Keys, versions, follow-ups, steps, schedules and blobs: what a job may carry beside itself.
-- Lock: `job`, `task` and `queue` for an instant. New columns have a default, so that a worker of the previous release goes
-- on; at the end, what its functions call is put in terms of the new ones, so that it frees keys and enqueues follow-ups, too.
-- Differs: versions are rows of their own here, and follow-ups may be owed, because ends wait for no caller's transaction.
-- Bits of extras: 1 then, 2 on_dead, 4 unique key, 8 version, 16 blobs.
alter table {schema}.job
    add column extras smallint not null default 0,
    add column unique_key bytea,
    add column unique_live boolean,
    add column version bigint,
    add column trigger text;

-- What `finished` needs of the job, so that the usual end need not look it up; NULL for claims of the previous release.
alter table {schema}.claimed
    add column enqueued_at timestamptz,
    add column queue_name text,
    add column task_name text,
    add column tenant text,
    add column correlation_id text,
    add column extras smallint;

alter table {schema}.task
    add column key bigint,
    add column priority int,
    add column expires interval;

alter table {schema}.queue
    add column keep interval,
    add column keep_dead interval;

create table {schema}.idempotency (
    key bytea primary key,
    id bigint not null,
    args_hash bytea not null,
    until timestamptz not null,
    -- How the job ended; known once the job itself is no longer kept.
    status text,
    ended_at timestamptz,
    result bytea,
    reason text
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
create index idempotency_id on {schema}.idempotency (id);
create index idempotency_until on {schema}.idempotency (until);

create table {schema}.unique_key (
    key bytea primary key,
    id bigint not null,
    -- Claims the job had when it took the key: with more, a key of scope queued is free.
    run int not null,
    live boolean not null
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
create index unique_key_id on {schema}.unique_key (id);

-- Versions that have completed; the highest counts.
create table {schema}.newest (
    key bytea not null,
    version bigint not null,
    id bigint not null,
    until timestamptz not null,
    primary key (key, version, id)
);
create index newest_until on {schema}.newest (until);

create table {schema}.once (
    key bytea primary key,
    until timestamptz not null
);
create index once_until on {schema}.once (until);

create table {schema}.step (
    id bigint not null,
    name text not null,
    value bytea,
    position bigint,
    primary key (id, name)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

-- What is enqueued when a job has completed (kind 1) or gone dead (2): one job each, as JSON.
create table {schema}.follow (
    id bigint not null,
    kind int not null check (kind in (1, 2)),
    position int not null,
    spec jsonb not null,
    primary key (id, kind, position)
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

create table {schema}.owed (
    id bigint not null,
    kind int not null,
    position int not null,
    primary key (id, kind, position)
);

create table {schema}.blob (
    ref text not null,
    id bigint not null,
    primary key (ref, id)
);
create index blob_id on {schema}.blob (id);

create table {schema}.release (
    origin text not null,
    release text not null,
    first_seen timestamptz not null,
    primary key (origin, release)
);

create table {schema}.schedule (
    name text primary key,
    origin text not null,
    definition jsonb not null,
    next_at timestamptz not null,
    paused boolean not null default false,
    last_at timestamptz,
    last_id bigint,
    fired bigint not null default 0,
    missed bigint not null default 0,
    created_at timestamptz not null,
    -- What went wrong when it was tried last, and how often since the last success.
    failure text,
    failed_at timestamptz,
    failures bigint not null default 0
);
create index schedule_next on {schema}.schedule (next_at, name);

create table {schema}.load_sample (
    at timestamptz primary key,
    commits bigint not null,
    written bigint not null,
    wal bigint not null,
    own_statements bigint,
    own_wal bigint,
    own_written bigint not null
);

-- include: functions/exchanged_2.sql
-- include: functions/key_of_1.sql
-- include: functions/key_digest_1.sql
-- include: functions/same_arguments_1.sql
-- include: functions/free_unique_1.sql
-- include: functions/finish_waiting_2.sql
-- include: functions/replace_waiting_1.sql
-- include: functions/hold_waiting_1.sql
-- include: functions/take_idempotency_1.sql
-- include: functions/key_holder_1.sql
-- include: functions/take_unique_1.sql
-- include: functions/retake_unique_1.sql
-- include: functions/store_jobs_1.sql
-- include: functions/follow_spec_1.sql
-- include: functions/follow_keyed_1.sql
-- include: functions/follow_up_1.sql
-- include: functions/pay_owed_1.sql
-- include: functions/settle_ends_1.sql
-- include: functions/keep_cursors_1.sql
-- include: functions/apply_completions_2.sql
-- include: functions/apply_any_ends_2.sql
-- include: functions/apply_ends_2.sql
-- include: functions/claim_parked_2.sql
-- include: functions/exchange_2.sql
-- include: functions/enqueue_one_1.sql
-- include: functions/enqueue_alike_1.sql
-- include: functions/enqueue_2.sql
-- include: functions/abandon_unknown_2.sql
-- include: functions/free_left_keys_1.sql
-- include: functions/rekey_waiting_1.sql
-- include: functions/keep_load_1.sql
-- include: functions/keep_sample_2.sql
-- include: functions/sweep_2.sql
-- include: functions/forget_jobs_2.sql
-- include: functions/forget_old_keys_1.sql
-- include: functions/retain_2.sql
-- include: functions/purge_2.sql
-- include: functions/announce_dead_2.sql
-- include: functions/redrive_2.sql
-- include: functions/report_2.sql
-- include: functions/lookup_2.sql
-- include: functions/ids_before_1.sql
-- include: functions/ids_after_1.sql
-- include: functions/count_ready_1.sql
-- include: functions/count_scheduled_1.sql
-- include: functions/count_blocked_1.sql
-- include: functions/count_dead_1.sql
-- include: functions/ask_cancel_2.sql
-- include: functions/settle_cancel_2.sql
-- include: functions/cancel_1.sql
-- include: functions/answer_1.sql
-- include: functions/once_1.sql
-- include: functions/unused_blobs_1.sql
-- include: functions/steps_1.sql
-- include: functions/keep_steps_1.sql
-- include: functions/schedules_1.sql
-- include: functions/due_schedules_1.sql
-- include: functions/fire_schedule_1.sql
-- include: functions/advance_schedule_1.sql
-- include: functions/fail_schedule_1.sql
-- include: functions/put_schedule_1.sql
-- include: functions/pause_schedule_1.sql
-- include: functions/resume_schedule_1.sql
-- include: functions/remove_schedule_1.sql
-- include: functions/declare_2.sql
-- include: functions/check_name_1.sql
-- include: functions/check_arguments_1.sql
-- include: functions/enqueue.sql

-- Names had other keys before SQL could make them. Waiting jobs move to the lanes that workers look into from now on.
do $$
begin
    set local search_path = {schema}, pg_temp;
    if not exists (select 1 from (select j.queue_key, j.queue from job j order by j.id desc limit 1000) j
                    where j.queue_key <> key_of_1(j.queue))
        and not exists (select 1 from queue where key <> key_of_1(name))
        and not exists (select 1 from pause where key <> key_of_1(substr(target, position(':' in target) + 1))) then
        return;
    end if;
    lock table ready, scheduled, blocked, claimed, finished, dead in exclusive mode;
    update ready r set task = key_of_1(j.task),
           queue = key_of_1(case r.queue when j.suspect_key then j.queue || E'\x1fsuspect' else j.queue end)
      from job j where j.id = r.id;
    update scheduled r set task = key_of_1(j.task),
           queue = key_of_1(case r.queue when j.suspect_key then j.queue || E'\x1fsuspect' else j.queue end)
      from job j where j.id = r.id;
    update blocked r set task = key_of_1(j.task),
           queue = key_of_1(case r.queue when j.suspect_key then j.queue || E'\x1fsuspect' else j.queue end)
      from job j where j.id = r.id;
    update claimed r set task = key_of_1(j.task),
           queue = key_of_1(case r.queue when j.suspect_key then j.queue || E'\x1fsuspect' else j.queue end)
      from job j where j.id = r.id;
    update finished set queue_key = key_of_1(queue);
    update dead set queue_key = key_of_1(queue);
    update job set queue_key = key_of_1(queue), suspect_key = key_of_1(queue || E'\x1fsuspect'), task_key = key_of_1(task);
    update queue set key = key_of_1(name);
    update pause set key = key_of_1(substr(target, position(':' in target) + 1));
    delete from sample;
end
$$;

-- What functions of the previous release call.
create or replace function {schema}.apply_completions_1(
    p_incarnations bigint[], p_ids bigint[], p_failed int[], p_lost int[], p_interrupted int[], p_snoozed int[],
    p_notes text[], p_elapsed float8[], p_now timestamptz
) returns bigint
language sql as $$
    select {schema}.apply_any_ends_2(
        p_incarnations, p_ids, array_fill(1, array[cardinality(p_ids)]), array_fill('complete'::text, array[cardinality(p_ids)]),
        array_fill('completed'::text, array[cardinality(p_ids)]), p_failed, p_lost, p_interrupted, p_snoozed, null, null, null,
        p_notes, null, null, null, null, p_elapsed, false, p_now)
$$;

create or replace function {schema}.apply_any_ends_1(
    p_incarnations bigint[], p_ids bigint[], p_runs int[], p_events text[], p_states text[],
    p_failed int[], p_lost int[], p_interrupted int[], p_snoozed int[], p_delays float8[], p_results bytea[],
    p_reasons text[], p_notes text[], p_error_types text[], p_error_messages text[], p_tracebacks text[],
    p_fingerprints text[], p_elapsed float8[], v_now timestamptz
) returns bigint
language sql as $$
    select {schema}.apply_any_ends_2(
        p_incarnations, p_ids, p_runs, p_events, p_states, p_failed, p_lost, p_interrupted, p_snoozed, p_delays, p_results,
        p_reasons, p_notes, p_error_types, p_error_messages, p_tracebacks, p_fingerprints, p_elapsed, false, v_now)
$$;

create or replace function {schema}.claim_lane_1(
    p_incarnation bigint, p_known jsonb, p_paused bigint[], p_place int, p_lane bigint, p_want int, p_sweep boolean,
    p_jump_lanes bigint[], p_jump_from int[], p_jump_pos bigint[], p_jump_to bigint[],
    p_now timestamptz
) returns setof {schema}.exchanged_1
language sql as $$
    with told as materialized (
        select * from {schema}.exchange_2(
            p_incarnation, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
            null, null, null, null, null, null, array[''], array[p_lane], array[p_want], array[p_sweep], p_want, null,
            p_jump_lanes, p_jump_from, p_jump_pos, p_jump_to, true, p_now)
    )
    select 'claimed', p_place, t.id, t.run, t.priority, t.pos, coalesce(t.counts[1], 0), coalesce(t.counts[2], 0),
           coalesce(t.counts[3], 0), coalesce(t.counts[4], 0), t.attempts, t.timeout, t.enqueued_at, p_now, j.queue, t.task,
           coalesce(t.tenant, ''), t.tags, t.correlation_id, t.args
      from told t cross join lateral (select j.queue from {schema}.job j where j.id = t.id offset 0) j where t.kind is null
     union all
    select 'lane', p_place, coalesce(min(t.id), (select s.last_value from {schema}.pos s)), coalesce(sum(t.run), 0)::int,
           (array_agg(t.priority order by t.priority desc nulls last))[1],
           (array_agg(t.pos order by t.priority desc nulls last, t.pos desc nulls last))[1], coalesce(max(t.counts[1]), 0),
           coalesce(max(t.counts[2]), 0), 0, 0, p_want, null, null, null, null, null, null, null, null, null
      from told t where t.kind = 'lane'
$$;

create or replace function {schema}.claim_parked_1(
    p_incarnation bigint, p_known jsonb, p_queues text[], p_lanes bigint[], p_caps int[], p_paused text[],
    p_paused_tasks bigint[], p_most int, p_tasks bigint[], p_now timestamptz
) returns setof {schema}.exchanged_1
language sql as $$
    select 'claimed', t.place, t.id, t.run, t.priority, t.pos, t.counts[1], t.counts[2], t.counts[3], t.counts[4], t.attempts,
           t.timeout, t.enqueued_at, p_now, j.queue, t.task, t.tenant, t.tags, t.correlation_id, t.args
      from {schema}.claim_parked_2(p_incarnation, p_known, p_queues, p_lanes, p_caps, p_paused, p_paused_tasks, p_most, p_tasks,
                                   p_now) t
     cross join lateral (select j.queue from {schema}.job j where j.id = t.id offset 0) j
$$;

create or replace function {schema}.finish_waiting_1(
    p_ids bigint[], p_runs int[], p_failed int[], p_lost int[], p_interrupted int[], p_snoozed int[], p_status text,
    p_reasons text[], p_notes text[], p_now timestamptz
) returns void
language sql as $$
    select {schema}.finish_waiting_2(
        p_ids, p_runs, p_failed, p_lost, p_interrupted, p_snoozed, p_status, p_reasons, p_notes, p_now)
$$;

create or replace function {schema}.abandon_unknown_1(p_before timestamptz, p_now timestamptz) returns int
language sql as $$
    select {schema}.abandon_unknown_2(p_before, p_now)
$$;

create or replace function {schema}.retain_1(
    p_keys bigint[], p_keep float8[], p_default float8, p_dead_keys bigint[], p_dead_keep float8[], p_dead_default float8,
    p_notice float8, p_most int, p_now timestamptz
) returns int
language sql security definer
set search_path = {schema}, pg_temp as $$
    select retain_2(p_keys, p_keep, p_default, p_dead_keys, p_dead_keep, p_dead_default, p_notice, p_most, p_now)
$$;

create or replace function {schema}.announce_dead_1(
    p_keys bigint[], p_keep float8[], p_default float8, p_ahead float8, p_notice float8, p_now timestamptz
) returns table (queue text, letters bigint, purged_from timestamptz)
language sql security definer
set search_path = {schema}, pg_temp as $$
    select queue, letters, purged_from from announce_dead_2(p_keys, p_keep, p_default, p_ahead, p_notice, p_now)
$$;

create or replace function {schema}.purge_1(p_ids bigint[], p_by text, p_reason text, p_now timestamptz) returns setof bigint
language sql security definer
set search_path = {schema}, pg_temp as $$
    select purge_2(p_ids, p_by, p_reason, p_now)
$$;

create or replace function {schema}.redrive_1(
    p_ids bigint[], p_by text, p_reason text, p_priority int, p_now timestamptz) returns setof bigint
language sql security definer
set search_path = {schema}, pg_temp as $$
    select redrive_2(p_ids, p_by, p_reason, p_priority, p_now)
$$;

create or replace function {schema}.settle_cancel_1(p_ids bigint[], p_by text, p_reason text, p_now timestamptz)
returns table (id bigint, running boolean)
language sql security definer
set search_path = {schema}, pg_temp as $$
    select s.id, s.running from settle_cancel_2(p_ids, p_by, p_reason, p_now) s
$$;
