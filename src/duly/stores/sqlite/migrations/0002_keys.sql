-- Keys, versions, follow-ups, steps, schedules and blobs: what a job may carry beside itself.
-- Times are microseconds since 1970 UTC, keys of people 16 bytes of core.keys. A release that knows nothing of these
-- tables goes on with the others: what is new there has a default.

alter table {prefix}_job add column extras integer not null default 0;
alter table {prefix}_job add column unique_key blob;
alter table {prefix}_job add column unique_live integer;
alter table {prefix}_job add column version integer;
alter table {prefix}_job add column "trigger" text;

alter table {prefix}_task add column key integer;
alter table {prefix}_task add column priority integer;
alter table {prefix}_task add column expires integer;

alter table {prefix}_queue add column keep integer;
alter table {prefix}_queue add column keep_dead integer;

create table {prefix}_idempotency (
    key blob primary key,
    id integer not null,
    args_hash blob not null,
    until integer not null,
    status text,
    ended_at integer,
    result blob,
    reason text
) strict, without rowid;

create index {prefix}_idempotency_id on {prefix}_idempotency (id);
create index {prefix}_idempotency_until on {prefix}_idempotency (until);

create table {prefix}_unique_key (
    key blob primary key,
    id integer not null,
    live integer not null check (live in (0, 1))
) strict, without rowid;

create index {prefix}_unique_key_id on {prefix}_unique_key (id);

create table {prefix}_newest (
    key blob primary key,
    version integer not null,
    until integer not null
) strict, without rowid;

create index {prefix}_newest_until on {prefix}_newest (until);

create table {prefix}_once (
    key blob primary key,
    until integer not null
) strict, without rowid;

create index {prefix}_once_until on {prefix}_once (until);

create table {prefix}_step (
    id integer not null,
    name text not null check (length(name) <= 200),
    value blob,
    position integer,
    primary key (id, name)
) strict, without rowid;

create table {prefix}_follow (
    id integer not null,
    kind integer not null check (kind in (1, 2)),
    position integer not null,
    spec text not null,
    primary key (id, kind, position)
) strict, without rowid;

create table {prefix}_blob (
    id integer not null,
    ref text not null,
    primary key (id, ref)
) strict, without rowid;

create index {prefix}_blob_ref on {prefix}_blob (ref);

create table {prefix}_release (
    origin text not null,
    release text not null,
    first_seen integer not null,
    primary key (origin, release)
) strict, without rowid;

create table {prefix}_schedule (
    name text primary key check (length(name) <= 100),
    origin text not null,
    definition text not null,
    next_at integer not null,
    paused integer not null default 0 check (paused in (0, 1)),
    last_at integer,
    last_id integer,
    fired integer not null default 0,
    missed integer not null default 0,
    created_at integer not null,
    failure text,
    failed_at integer,
    failures integer not null default 0
) strict, without rowid;

create index {prefix}_schedule_next on {prefix}_schedule (next_at) where paused = 0;
