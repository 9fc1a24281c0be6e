-- The tables of jobs. The state of a job is the table it stands in; a transition is a delete here and an insert there.
-- Lock: none but this migration's own. Hot tables have exactly one index per access path, none of them partial, so that
-- no statement ever has a second plan. Differs: SQLite has one sequence row instead of two sequences.
-- Whoever may use the schema may see whether it fits.
grant select on {schema}.schema_version to public;

create sequence {schema}.pos as bigint;
create sequence {schema}.incarnation as bigint;

create table {schema}.worker (
    incarnation bigint primary key,
    beat bigint not null default 0,
    beat_at timestamptz not null,
    progress_at timestamptz not null,
    pid int not null,
    slots int not null,
    draining boolean not null default false,
    started_at timestamptz not null,
    lease interval not null,
    heartbeat interval not null,
    host text not null,
    supervisor text not null,
    version text not null,
    queues text[] not null,
    -- Time to run in seconds of every task the process knows, by the task's key.
    known jsonb not null
) with (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

create table {schema}.job (
    id bigint primary key,
    queue_key bigint not null,
    suspect_key bigint not null,
    task_key bigint not null,
    enqueued_at timestamptz not null,
    expires_at timestamptz,
    timeout interval,
    priority int not null,
    attempts int,
    form smallint not null default 1,
    queue text not null,
    task text not null,
    tenant text not null default '',
    correlation_id text,
    tags text[],
    args bytea not null
) with (autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
create index job_correlation on {schema}.job (correlation_id, id) where correlation_id is not null;

create table {schema}.job_tag (
    tag text not null,
    id bigint not null,
    primary key (tag, id)
);
create index job_tag_id on {schema}.job_tag (id);

create table {schema}.ready (
    queue bigint not null,
    tenant bigint not null default 0,
    pos bigint not null,
    id bigint not null,
    task bigint not null,
    ready_at timestamptz not null,
    priority int not null,
    run int not null default 0,
    failed int not null default 0,
    lost int not null default 0,
    interrupted int not null default 0,
    snoozed int not null default 0,
    expires_at timestamptz,
    primary key (queue, tenant, priority, pos)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = -1,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
create index ready_id on {schema}.ready (id);

create table {schema}.scheduled (
    id bigint primary key,
    run_at timestamptz not null,
    queue bigint not null,
    task bigint not null,
    priority int not null,
    run int not null default 0,
    failed int not null default 0,
    lost int not null default 0,
    interrupted int not null default 0,
    snoozed int not null default 0,
    expires_at timestamptz
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = -1,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
create index scheduled_due on {schema}.scheduled (run_at, id);

create table {schema}.blocked (
    id bigint primary key,
    task bigint not null,
    queue bigint not null,
    pos bigint not null,
    since timestamptz not null,
    -- 1: no worker of the queue knows the task; 2: the task is paused.
    cause smallint not null check (cause in (1, 2)),
    priority int not null,
    run int not null default 0,
    failed int not null default 0,
    lost int not null default 0,
    interrupted int not null default 0,
    snoozed int not null default 0,
    expires_at timestamptz
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = -1,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
create index blocked_cause on {schema}.blocked (cause, task, pos);

create table {schema}.claimed (
    incarnation bigint not null,
    id bigint not null,
    queue bigint not null,
    task bigint not null,
    claimed_at timestamptz not null,
    deadline timestamptz not null,
    run int not null,
    priority int not null,
    failed int not null,
    lost int not null,
    interrupted int not null,
    snoozed int not null,
    expires_at timestamptz,
    primary key (incarnation, id)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
create unique index claimed_id on {schema}.claimed (id);

create table {schema}.finished (
    id bigint primary key,
    queue_key bigint not null,
    enqueued_at timestamptz not null,
    started_at timestamptz,
    finished_at timestamptz not null,
    incarnation bigint,
    run int not null,
    failed int not null,
    lost int not null,
    interrupted int not null,
    snoozed int not null,
    status text not null check (status in ('completed', 'skipped', 'cancelled', 'shed')),
    queue text not null,
    task text not null,
    tenant text not null,
    correlation_id text,
    reason text,
    note text,
    -- Results over 8 KiB stand in `result`.
    result bytea
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
create index finished_order on {schema}.finished (queue_key, finished_at, id);

create table {schema}.result (
    id bigint primary key,
    result bytea not null
);

create table {schema}.dead (
    id bigint primary key,
    queue_key bigint not null,
    enqueued_at timestamptz not null,
    started_at timestamptz,
    died_at timestamptz not null,
    announced_at timestamptz,
    incarnation bigint,
    run int not null,
    failed int not null,
    lost int not null,
    interrupted int not null,
    snoozed int not null,
    queue text not null,
    task text not null,
    tenant text not null,
    correlation_id text,
    reason text,
    note text,
    error_type text,
    error_message text,
    traceback text,
    fingerprint text
);
create index dead_order on {schema}.dead (queue_key, died_at, id);
create index dead_fingerprint on {schema}.dead (fingerprint text_pattern_ops, id);

create table {schema}.attempt (
    id bigint not null,
    run int not null,
    incarnation bigint not null,
    started_at timestamptz,
    ended_at timestamptz not null,
    event text not null,
    reason text,
    error_type text,
    error_message text,
    traceback text,
    fingerprint text,
    primary key (id, run)
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

create table {schema}.wish (
    id bigint primary key,
    verb text not null,
    by text not null,
    reason text not null,
    at timestamptz not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

create table {schema}.progress (
    id bigint primary key,
    run int not null,
    done bigint not null,
    of bigint,
    note text,
    at timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0);

create table {schema}.pause (
    target text primary key,
    key bigint not null,
    until timestamptz,
    by text not null,
    reason text not null,
    at timestamptz not null
);

create table {schema}.operation (
    id bigint generated always as identity primary key,
    verb text not null check (verb in ('redrive', 'purge', 'cancel')),
    filter jsonb not null,
    state text not null check (state in ('running', 'paused', 'done', 'cancelled')),
    rate float8,
    priority int,
    done bigint not null default 0,
    skipped bigint not null default 0,
    total bigint not null,
    cursor bigint not null default 0,
    upto bigint not null,
    by text not null,
    reason text not null,
    created_at timestamptz not null,
    ended_at timestamptz
);

-- Who did what by hand, for the record.
create table {schema}.act (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    verb text not null,
    by text not null,
    reason text not null,
    jobs bigint not null
);

create table {schema}.sweep (
    name text primary key,
    last_at timestamptz not null,
    cost interval not null default '0',
    position bigint not null default 0
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
        autovacuum_vacuum_cost_delay = 0);

create table {schema}.sample (
    queue bigint not null,
    at timestamptz not null,
    ready bigint not null,
    running bigint not null,
    ended bigint not null,
    primary key (queue, at)
);

create table {schema}.task (
    name text primary key,
    queue text not null
);

create table {schema}.queue (
    name text primary key,
    key bigint not null,
    owner text not null
);

-- include: functions/door_class_1.sql
-- include: functions/require_read_committed_1.sql
-- include: functions/ring_1.sql
-- include: functions/exchanged_1.sql
-- include: functions/abandon_unknown_1.sql
-- include: functions/advance_operation_1.sql
-- include: functions/announce_dead_1.sql
-- include: functions/apply_any_ends_1.sql
-- include: functions/apply_completions_1.sql
-- include: functions/apply_ends_1.sql
-- include: functions/arguments_1.sql
-- include: functions/ask_cancel_1.sql
-- include: functions/beat_1.sql
-- include: functions/beats_1.sql
-- include: functions/blocked_tasks_1.sql
-- include: functions/cancel_waiting_1.sql
-- include: functions/claim_lane_1.sql
-- include: functions/claim_parked_1.sql
-- include: functions/declare_1.sql
-- include: functions/disown_1.sql
-- include: functions/drain_worker_1.sql
-- include: functions/draining_1.sql
-- include: functions/enqueue_1.sql
-- include: functions/exchange_1.sql
-- include: functions/expire_waiting_1.sql
-- include: functions/extend_1.sql
-- include: functions/finish_waiting_1.sql
-- include: functions/forget_jobs_1.sql
-- include: functions/keep_sample_1.sql
-- include: functions/lookup_1.sql
-- include: functions/note_act_1.sql
-- include: functions/parked_tasks_1.sql
-- include: functions/pause_1.sql
-- include: functions/positions_behind_1.sql
-- include: functions/promote_1.sql
-- include: functions/purge_1.sql
-- include: functions/reap_1.sql
-- include: functions/redrive_1.sql
-- include: functions/register_1.sql
-- include: functions/report_1.sql
-- include: functions/reprioritise_1.sql
-- include: functions/resume_1.sql
-- include: functions/retain_1.sql
-- include: functions/run_at_1.sql
-- include: functions/run_now_1.sql
-- include: functions/set_operation_1.sql
-- include: functions/settle_cancel_1.sql
-- include: functions/start_operation_1.sql
-- include: functions/sweep_1.sql
-- include: functions/sweep_done_1.sql
-- include: functions/sweep_due_1.sql
-- include: functions/sweep_turn_1.sql
-- include: functions/take_back_1.sql
-- include: functions/take_back_all_1.sql
-- include: functions/take_back_stray_1.sql
-- include: functions/unpark_resumed_1.sql
