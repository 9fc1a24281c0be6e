-- What those who operate a store leave in it: tokens, keys to sign with, answers, marks, the record of acts, alerts, tallies.
-- Lock: `attempt`, against writers, while it gets an index, about a second for a million of rows; else none but those of new
-- tables and functions. Workers of the previous release go on: what their functions note of acts is written here, too.
-- Differs: SQLite has one writer, so that the order of acts is that of their ids there.

create table {schema}.token (
    id bigint generated always as identity primary key,
    name text not null check (length(name) between 1 and 100),
    -- Of the token's text, which is kept nowhere.
    hash bytea not null unique,
    scopes text[] not null,
    by text not null,
    created_at timestamptz not null,
    expires_at timestamptz,
    last_used_at timestamptz,
    revoked_at timestamptz
);

-- What tickets and sessions are signed with. Nobody but servers and workers may read it.
create table {schema}.secret (
    kind text not null,
    id int not null,
    value bytea not null,
    created_at timestamptz not null,
    retired_at timestamptz,
    primary key (kind, id)
);

-- Who did what by hand, and why; never changed. It takes the place of `act`.
create table {schema}.audit_entry (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    actor text not null,
    verb text not null,
    target text not null,
    reason text not null,
    -- JSON, byte for byte as it was written.
    detail text not null
);

-- Entries that no seal covers yet. An entry may commit after one with a higher id, so that no range of ids is ever complete.
create table {schema}.audit_pending (
    id bigint primary key
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- Batches of entries, each chained to the one before, with the ids of its entries.
create table {schema}.audit_seal (
    id bigint primary key,
    ids bigint[] not null,
    digest bytea not null,
    previous bytea not null,
    at timestamptz not null
);

-- Jobs of audited tasks whose end is yet to be written into the audit; with the run of the death that was.
create table {schema}.audited (
    id bigint primary key,
    dead_run int
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- What the first request of an idempotency key was answered; without an answer it is in flight.
create table {schema}.answer (
    key bytea primary key,
    token bigint not null,
    body_hash bytea not null,
    status int not null default 0,
    answer bytea,
    at timestamptz not null,
    expires_at timestamptz not null
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
create index answer_expires on {schema}.answer (expires_at);

-- The job with edited arguments that runs in the place of a dead letter, which stays.
alter table {schema}.dead add column successor bigint;
-- All that groups and counts of dead letters ask for, so that their tracebacks are not read.
create index dead_by_error on {schema}.dead (fingerprint, queue, task, died_at)
    include (id, tenant, enqueued_at, correlation_id, successor);

-- What people say about a group of dead letters; the fingerprint is empty for those without an error.
create table {schema}.dead_group (
    fingerprint text not null,
    queue text not null,
    task text not null,
    state text not null check (state in ('new', 'acknowledged', 'fixed')),
    owner text,
    note text not null,
    by text not null,
    at timestamptz not null,
    regressed_at timestamptz,
    primary key (fingerprint, queue, task)
);

-- Where each rule stands for each target: since when its condition disagrees with its state, and its last change.
create table {schema}.alert (
    rule text not null,
    target text not null,
    state text not null check (state in ('clear', 'firing')),
    change_id bigint not null,
    since timestamptz,
    changed_at timestamptz,
    -- JSON.
    value text not null,
    primary key (rule, target)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

create table {schema}.alert_change (
    id bigint generated always as identity primary key,
    rule text not null,
    target text not null,
    state text not null,
    at timestamptz not null,
    value text not null
);

create table {schema}.alert_delivery (
    change_id bigint not null,
    sink text not null,
    state text not null check (state in ('due', 'sent', 'given_up')),
    tries int not null,
    next_at timestamptz not null,
    last_error text,
    primary key (change_id, sink)
);
create index alert_delivery_due on {schema}.alert_delivery (change_id) where state = 'due';

create table {schema}.silence (
    id bigint generated always as identity primary key,
    rule text not null,
    target text not null,
    by text not null,
    reason text not null,
    at timestamptz not null,
    until timestamptz not null
);

create index audit_entry_at on {schema}.audit_entry (at);

-- What happened per queue and task within a minute (span 1) or an hour (span 60).
create table {schema}.tally (
    span smallint not null check (span in (1, 60)),
    at timestamptz not null,
    queue text not null,
    task text not null,
    completed bigint not null,
    skipped bigint not null,
    dead bigint not null,
    cancelled bigint not null,
    shed bigint not null,
    failed bigint not null,
    lost bigint not null,
    timeout bigint not null,
    redelivered bigint not null,
    redriven bigint not null,
    suppressed bigint not null,
    -- Microseconds of all completed together.
    waited bigint not null,
    ran bigint not null,
    primary key (span, at, queue, task)
);

create index attempt_ended on {schema}.attempt (ended_at);

-- include: functions/note_act_2.sql
-- What was noted so far.
with noted as (
    insert into {schema}.audit_entry (at, actor, verb, target, reason, detail)
    select a.at, a.by, split_part(a.verb, ' ', 1), coalesce(substr(a.verb, nullif(position(' ' in a.verb), 0) + 1), ''), a.reason,
           case when a.jobs > 0 then '{"jobs":' || a.jobs || '}' else '{}' end
      from {schema}.act a order by a.id
    returning id
)
insert into {schema}.audit_pending (id) select n.id from noted n;

-- include: functions/note_jobs_1.sql
-- include: functions/append_audit_1.sql
-- include: functions/enter_audited_1.sql
-- Such a job carries a tag: 'audit', or 'audit:' and who enqueued it. Its entry stands in the transaction that stores it,
-- whoever does.
create trigger audit_in after insert on {schema}.job_tag for each row
    when (new.tag = 'audit' or new.tag like 'audit:%') execute function {schema}.enter_audited_1();

-- include: functions/follow_audited_1.sql
-- include: functions/audit_page_1.sql
-- include: functions/unsealed_1.sql
-- include: functions/seal_audit_1.sql
-- include: functions/audit_seals_1.sql
-- include: functions/audit_entries_1.sql
-- include: functions/audit_totals_1.sql
-- include: functions/sealed_1.sql
-- include: functions/reseal_1.sql
-- include: functions/sealed_elsewhere_1.sql
-- include: functions/ask_cancel_3.sql
-- include: functions/cancel_2.sql
-- include: functions/cancel_batch_2.sql
-- include: functions/redrive_4.sql
-- include: functions/purge_3.sql
-- include: functions/run_now_3.sql
-- include: functions/run_at_3.sql
-- include: functions/reprioritise_3.sql
-- include: functions/pause_2.sql
-- include: functions/resume_2.sql
-- include: functions/start_operation_2.sql
-- include: functions/set_operation_2.sql
-- include: functions/drain_worker_2.sql
-- include: functions/enqueue_one_2.sql
-- include: functions/enqueue_alike_2.sql
-- include: functions/enqueue_4.sql
-- include: functions/token_row_1.sql
-- include: functions/put_token_1.sql
-- include: functions/token_1.sql
-- include: functions/revoke_token_1.sql
-- include: functions/touch_tokens_1.sql
-- include: functions/secrets_1.sql
-- include: functions/keep_secret_1.sql
-- include: functions/forget_secret_1.sql
-- include: functions/take_answers_1.sql
-- include: functions/fill_answers_1.sql
-- include: functions/kept_answer_1.sql
-- include: functions/release_answers_1.sql
-- include: functions/forget_answers_1.sql
-- include: functions/died_since_1.sql
-- include: functions/dead_marks_1.sql
-- include: functions/mark_dead_1.sql
-- include: functions/regress_dead_1.sql
-- include: functions/job_parts_1.sql
-- include: functions/hold_dead_1.sql
-- include: functions/succeed_dead_1.sql
-- include: functions/foresee_redrive_1.sql
-- include: functions/alert_turn_1.sql
-- include: functions/alerts_1.sql
-- include: functions/watch_alert_1.sql
-- include: functions/change_alert_1.sql
-- include: functions/drop_alert_1.sql
-- include: functions/delivery_row_1.sql
-- include: functions/take_deliveries_1.sql
-- include: functions/settle_delivery_1.sql
-- include: functions/alert_changes_1.sql
-- include: functions/deliveries_1.sql
-- include: functions/silence_alert_1.sql
-- include: functions/end_silence_1.sql
-- include: functions/silences_1.sql
-- include: functions/tally_parts_1.sql
-- include: functions/fold_tally_1.sql
-- include: functions/tallies_1.sql
-- include: functions/tallied_1.sql
-- include: functions/keys_2.sql

-- A role that may use the schema may work with jobs. Keys and tokens, and what people did, are for those who are told so.
revoke execute on function {schema}.secrets_1(text) from public;
revoke execute on function {schema}.keep_secret_1(text, bytea, text, text, timestamptz) from public;
revoke execute on function {schema}.forget_secret_1(text, int, text, text, timestamptz) from public;
revoke execute on function {schema}.put_token_1(text, bytea, text[], float8, text, text, timestamptz) from public;
revoke execute on function {schema}.revoke_token_1(bigint, text, text, timestamptz) from public;
revoke execute on function {schema}.token_1(bytea, timestamptz) from public;
revoke execute on function {schema}.audit_page_1(bigint, text, text, text, timestamptz, timestamptz, int) from public;
revoke execute on function {schema}.audit_seals_1(bigint, bigint, int) from public;
revoke execute on function {schema}.audit_entries_1(bigint) from public;
revoke execute on function {schema}.audit_totals_1() from public;
revoke execute on function {schema}.sealed_1(text, bytea, bigint, text, int) from public;
revoke execute on function {schema}.reseal_1(text, bigint[], text[], bytea[], bytea[]) from public;
revoke execute on function {schema}.sealed_elsewhere_1(text) from public;

-- What functions of the previous release call. What stands behind the first space is what it was done to.
create or replace function {schema}.note_act_1(p_verb text, p_by text, p_reason text, p_jobs bigint, p_now timestamptz)
returns void
language plpgsql as $$
begin
    perform note_act_2(split_part(p_verb, ' ', 1), substr(p_verb, nullif(position(' ' in p_verb), 0) + 1), p_by, p_reason,
                       case when p_jobs > 0 then '{"jobs":' || p_jobs || '}' else '{}' end, p_now);
end
$$;
