-- Jobs: the state of a job is the table it stands in; {prefix}_job itself is written once and never updated.
-- Times are microseconds since 1970 UTC, keys are core.names.key_of of a name.

create table {prefix}_seq (
    only integer primary key check (only = 1),
    value integer not null
) strict;

insert into {prefix}_seq (only, value) values (1, 0);

create table {prefix}_queue (
    name text primary key,
    key integer not null,
    owner text not null
) strict, without rowid;

create table {prefix}_task (
    name text primary key,
    queue text not null
) strict, without rowid;

create table {prefix}_worker (
    incarnation integer primary key,
    beat integer not null default 0,
    beat_at integer not null,
    lease integer not null,
    heartbeat integer not null,
    host text not null,
    pid integer not null,
    supervisor text not null,
    queues text not null,
    tasks text not null,
    slots integer not null,
    version text not null,
    started_at integer not null,
    progress_at integer,
    draining integer not null default 0
) strict;

create table {prefix}_job (
    id integer primary key,
    queue text not null check (length(queue) <= 100),
    task text not null check (length(task) <= 200),
    args blob not null,
    priority integer not null check (priority between -2147483648 and 2147483647),
    tenant text not null check (length(tenant) <= 200),
    tags text,
    correlation_id text check (length(correlation_id) <= 200),
    attempts integer,
    timeout integer,
    expires_at integer,
    enqueued_at integer not null,
    form integer not null default 1
) strict;

create index {prefix}_job_correlation on {prefix}_job (correlation_id, id) where correlation_id is not null;

create table {prefix}_job_tag (
    tag text not null check (length(tag) <= 100),
    id integer not null,
    primary key (tag, id)
) strict, without rowid;

create table {prefix}_ready (
    queue integer not null,
    tenant integer not null default 0,
    priority integer not null check (priority between -2147483648 and 2147483647),
    pos integer not null,
    id integer not null,
    task integer not null,
    run integer not null,
    failed integer not null,
    lost integer not null,
    interrupted integer not null,
    snoozed integer not null,
    expires_at integer,
    ready_at integer not null,
    primary key (queue, tenant, priority, pos)
) strict, without rowid;

create unique index {prefix}_ready_id on {prefix}_ready (id);
create index {prefix}_ready_expires on {prefix}_ready (expires_at, id) where expires_at is not null;

create table {prefix}_scheduled (
    id integer primary key,
    run_at integer not null,
    queue integer not null,
    task integer not null,
    priority integer not null check (priority between -2147483648 and 2147483647),
    run integer not null,
    failed integer not null,
    lost integer not null,
    interrupted integer not null,
    snoozed integer not null,
    expires_at integer
) strict;

create index {prefix}_scheduled_due on {prefix}_scheduled (run_at, id);
create index {prefix}_scheduled_expires on {prefix}_scheduled (expires_at, id) where expires_at is not null;

create table {prefix}_blocked (
    id integer primary key,
    cause integer not null check (cause in (1, 2)),
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
    since integer not null
) strict;

create index {prefix}_blocked_cause on {prefix}_blocked (cause, task, pos);
create index {prefix}_blocked_expires on {prefix}_blocked (expires_at, id) where expires_at is not null;

create table {prefix}_claimed (
    incarnation integer not null,
    id integer not null,
    run integer not null,
    queue integer not null,
    task integer not null,
    priority integer not null,
    failed integer not null,
    lost integer not null,
    interrupted integer not null,
    snoozed integer not null,
    expires_at integer,
    claimed_at integer not null,
    deadline integer not null,
    primary key (incarnation, id)
) strict, without rowid;

create unique index {prefix}_claimed_id on {prefix}_claimed (id);

create table {prefix}_finished (
    id integer primary key,
    queue text not null,
    queue_key integer not null,
    task text not null,
    tenant text not null,
    status text not null check (status in ('completed', 'skipped', 'cancelled', 'shed')),
    run integer not null,
    failed integer not null,
    lost integer not null,
    interrupted integer not null,
    snoozed integer not null,
    incarnation integer,
    enqueued_at integer not null,
    started_at integer,
    finished_at integer not null,
    reason text,
    note text,
    result blob,
    correlation_id text
) strict;

create index {prefix}_finished_queue on {prefix}_finished (queue_key, finished_at, id);

create table {prefix}_result (
    id integer primary key,
    result blob not null
) strict;

create table {prefix}_dead (
    id integer primary key,
    queue text not null,
    task text not null,
    tenant text not null,
    run integer not null,
    failed integer not null,
    lost integer not null,
    interrupted integer not null,
    snoozed integer not null,
    incarnation integer,
    enqueued_at integer not null,
    started_at integer,
    died_at integer not null,
    reason text,
    note text,
    error_type text,
    error_message text,
    error_traceback text,
    fingerprint text,
    announced_at integer
) strict;

create index {prefix}_dead_queue on {prefix}_dead (queue, died_at);
create index {prefix}_dead_fingerprint on {prefix}_dead (fingerprint, id);

create table {prefix}_attempt (
    id integer not null,
    run integer not null,
    event text not null,
    incarnation integer not null,
    started_at integer,
    ended_at integer not null,
    reason text,
    error_type text,
    error_message text,
    error_traceback text,
    fingerprint text,
    primary key (id, run)
) strict;

create table {prefix}_wish (
    id integer primary key,
    verb text not null check (verb = 'cancel'),
    by text not null,
    reason text not null,
    at integer not null
) strict;

create table {prefix}_progress (
    id integer primary key,
    run integer not null,
    done integer not null,
    "of" integer,
    note text,
    at integer not null
) strict;

create table {prefix}_pause (
    target text primary key,
    until integer,
    by text not null,
    reason text not null,
    at integer not null
) strict, without rowid;

create table {prefix}_operation (
    id integer primary key autoincrement,
    verb text not null,
    filter text not null,
    state text not null check (state in ('running', 'paused', 'done', 'cancelled')),
    rate real,
    priority integer,
    done integer not null default 0,
    skipped integer not null default 0,
    total integer not null,
    by text not null,
    reason text not null,
    created_at integer not null,
    ended_at integer,
    "cursor" integer not null default 0,
    upto integer not null
) strict;

create table {prefix}_act (
    number integer primary key autoincrement,
    at integer not null,
    verb text not null,
    by text not null,
    reason text not null,
    jobs integer not null
) strict;

create table {prefix}_sweep (
    name text primary key,
    last_at integer not null,
    position integer not null default 0
) strict, without rowid;

create table {prefix}_sample (
    queue text not null,
    at integer not null,
    ready integer not null,
    finished integer not null,
    primary key (queue, at)
) strict, without rowid;
