-- What bounds jobs beside their place in a queue: ordering keys, limits, fair tenants, overrides.
-- Times are microseconds since 1970 UTC, intervals of rates seconds, keys are core.names.key_of of a name. A release
-- that knows nothing of these tables goes on with the others: what is new there has a default.

-- A number that changes with every change of a bound, so that what was read of them need not be read again.
create table {prefix}_control (
    only integer primary key check (only = 1),
    version integer not null
) strict;

insert into {prefix}_control (only, version) values (1, 0);

create table {prefix}_limit_policy (
    name text primary key,
    max_running integer,
    interval real,
    burst integer,
    weight integer,
    breaker text,
    origin text not null
) strict, without rowid;

create table {prefix}_task_limit (
    task integer not null,
    name text not null,
    argument text,
    primary key (task, name)
) strict, without rowid;

create table {prefix}_override (
    id integer primary key autoincrement,
    target text not null,
    kind text not null,
    value text not null,
    by text not null,
    reason text not null,
    at integer not null,
    until integer,
    lifted_at integer
) strict;

create index {prefix}_override_live on {prefix}_override (id) where lifted_at is null;

create table {prefix}_tenant (
    key integer primary key,
    name text not null unique,
    weight integer not null,
    max_running integer,
    interval real,
    burst integer,
    by text not null,
    reason text not null,
    at integer not null
) strict;

-- One line each: a statement ends where a line does.
create trigger {prefix}_policy_in after insert on {prefix}_limit_policy begin update {prefix}_control set version = random(); end;
create trigger {prefix}_policy_to after update on {prefix}_limit_policy begin update {prefix}_control set version = random(); end;
create trigger {prefix}_policy_out after delete on {prefix}_limit_policy begin update {prefix}_control set version = random(); end;
create trigger {prefix}_task_limit_in after insert on {prefix}_task_limit begin update {prefix}_control set version = random(); end;
create trigger {prefix}_task_limit_to after update on {prefix}_task_limit begin update {prefix}_control set version = random(); end;
create trigger {prefix}_task_limit_out after delete on {prefix}_task_limit begin update {prefix}_control set version = random(); end;
create trigger {prefix}_override_in after insert on {prefix}_override begin update {prefix}_control set version = random(); end;
create trigger {prefix}_override_to after update on {prefix}_override begin update {prefix}_control set version = random(); end;
create trigger {prefix}_override_out after delete on {prefix}_override begin update {prefix}_control set version = random(); end;

create table {prefix}_limit_state (
    key integer primary key,
    name text not null,
    tat integer not null default 0,
    held_until integer,
    held_by text,
    held_reason text,
    next_at integer,
    -- The tenant that was let go on last, of several that wait.
    turn integer not null default 0,
    breaker_state text,
    breaker_until integer,
    calls integer not null default 0,
    failures integer not null default 0,
    window_at integer,
    forced text
) strict;

create index {prefix}_limit_state_next on {prefix}_limit_state (next_at) where next_at is not null;

create table {prefix}_hold (
    key integer not null,
    id integer not null,
    incarnation integer not null,
    until integer,
    primary key (key, id)
) strict, without rowid;

create index {prefix}_hold_incarnation on {prefix}_hold (incarnation, id);
create index {prefix}_hold_until on {prefix}_hold (until) where until is not null;

create table {prefix}_keyed (
    key integer not null,
    id integer not null,
    primary key (key, id)
) strict, without rowid;

create table {prefix}_key_head (
    key integer primary key,
    id integer,
    queue integer not null,
    paused integer not null default 0 check (paused in (0, 1)),
    since integer not null
) strict;

create index {prefix}_key_head_id on {prefix}_key_head (id) where id is not null;

alter table {prefix}_job add column ordering_key text check (length(ordering_key) <= 255);

alter table {prefix}_queue add column fair integer not null default 0;
alter table {prefix}_queue add column ordering text not null default 'wait';
alter table {prefix}_queue add column serialise integer not null default 0;
alter table {prefix}_queue add column wait_target integer;
-- Since when its oldest ready job has waited longer than that, and somebody was told.
alter table {prefix}_queue add column late_since integer;
alter table {prefix}_queue add column max_depth integer;
alter table {prefix}_queue add column max_age integer;
alter table {prefix}_queue add column when_full text not null default 'reject';
alter table {prefix}_queue add column importance integer not null default 100;
alter table {prefix}_queue add column reserve real not null default 0;

-- The time since which a job has waited for a limit, through every try.
alter table {prefix}_ready add column since integer;

alter table {prefix}_scheduled add column tenant integer not null default 0;

alter table {prefix}_claimed add column tenant integer not null default 0;

-- Causes 3 and 4: behind the head of its ordering key, behind a limit. The gate is the key of what it waits behind.
create table {prefix}_blocked_again (
    id integer primary key,
    cause integer not null check (cause in (1, 2, 3, 4)),
    task integer not null,
    queue integer not null,
    priority integer not null check (priority between -2147483648 and 2147483647),
    pos integer not null,
    run integer not null,
    failed integer not null,
    lost integer not null,
    interrupted integer not null,
    snoozed integer not null,
    expires_at integer,
    since integer not null,
    gate integer not null default 0,
    tenant integer not null default 0
) strict;

insert into {prefix}_blocked_again (
    id, cause, task, queue, priority, pos, run, failed, lost, interrupted, snoozed, expires_at, since
)
select id, cause, task, queue, priority, pos, run, failed, lost, interrupted, snoozed, expires_at, since
from {prefix}_blocked;

drop table {prefix}_blocked;

alter table {prefix}_blocked_again rename to {prefix}_blocked;

create index {prefix}_blocked_cause on {prefix}_blocked (cause, task, pos);
create index {prefix}_blocked_gate on {prefix}_blocked (gate, tenant, priority, pos) where gate <> 0;
create index {prefix}_blocked_expires on {prefix}_blocked (expires_at, id) where expires_at is not null;

-- Jobs that a full queue or store has turned away since a moment of the last hour: 1 refused, 2 shed.
create table {prefix}_turned_away (
    queue integer not null,
    kind integer not null check (kind in (1, 2)),
    jobs integer not null,
    since integer not null,
    at integer not null,
    primary key (queue, kind)
) strict, without rowid;

-- What the file took when it was sampled, in bytes.
create table {prefix}_store_use (
    at integer primary key,
    used integer not null,
    free_disk integer
) strict;

-- Batches: the follow-ups of a batch stand among those of jobs, under its id, which is of the same sequence.
alter table {prefix}_job add column batch integer;

create index {prefix}_job_batch on {prefix}_job (batch, id) where batch is not null;

create table {prefix}_batch (
    id integer primary key,
    name text not null check (length(name) <= 200),
    state text not null,
    parent integer,
    total integer not null default 0,
    completed integer not null default 0,
    skipped integer not null default 0,
    cancelled integer not null default 0,
    shed integer not null default 0,
    dead integer not null default 0,
    told text,
    mourned integer not null default 0 check (mourned in (0, 1)),
    created_at integer not null,
    closed_at integer,
    finished_at integer,
    reason text
) strict;

create index {prefix}_batch_parent on {prefix}_batch (parent) where parent is not null;
create index {prefix}_batch_finished on {prefix}_batch (finished_at) where finished_at is not null;
create index {prefix}_batch_unfinished on {prefix}_batch (id) where finished_at is null;
