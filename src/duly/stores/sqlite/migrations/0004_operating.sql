-- What those who operate a store leave in it: tokens, keys to sign with, answers, marks, the record of acts, alerts, tallies.
-- Times are microseconds since 1970 UTC, lists and details are JSON. A release that knows nothing of these tables goes on
-- with the others.

create table {prefix}_token (
    id integer primary key autoincrement,
    name text not null check (length(name) between 1 and 100),
    -- Of the token's text, which is kept nowhere.
    hash blob not null unique,
    scopes text not null,
    by text not null,
    created_at integer not null,
    expires_at integer,
    last_used_at integer,
    revoked_at integer
) strict;

create table {prefix}_secret (
    kind text not null,
    id integer not null,
    value blob not null,
    created_at integer not null,
    retired_at integer,
    primary key (kind, id)
) strict, without rowid;

-- Who did what by hand, and why; never changed. It takes the place of {prefix}_act.
create table {prefix}_audit_entry (
    id integer primary key autoincrement,
    at integer not null,
    actor text not null,
    verb text not null,
    target text not null,
    reason text not null,
    detail text not null
) strict;

-- What a process of an earlier release notes while it still runs is an entry, too. What stands behind the first space of a
-- verb is what the act was done to. One line: a statement ends where a line does.
create trigger {prefix}_act_in after insert on {prefix}_act begin insert into {prefix}_audit_entry (at, actor, verb, target, reason, detail) select new.at, new.by, iif(a.space > 0, substr(a.verb, 1, a.space - 1), a.verb), iif(a.space > 0, substr(a.verb, a.space + 1), ''), new.reason, iif(new.jobs > 0, json_object('jobs', new.jobs), json_object()) from (select v.verb, instr(v.verb, ' ') as space from (select case new.verb when 'run now' then 'run_now' when 'run at' then 'run_at' else new.verb end as verb) as v) as a; end;

-- And what was noted so far.
insert into {prefix}_audit_entry (at, actor, verb, target, reason, detail)
select at, by, iif(space > 0, substr(word, 1, space - 1), word), iif(space > 0, substr(word, space + 1), ''), reason,
       iif(jobs > 0, json_object('jobs', jobs), json_object())
from (select *, instr(word, ' ') as space from (
    select *, case verb when 'run now' then 'run_now' when 'run at' then 'run_at' else verb end as word from {prefix}_act))
order by number;

-- Jobs of audited tasks whose end is yet to be written into the audit; with the run of the death that was.
create table {prefix}_audited (
    id integer primary key,
    dead_run integer
) strict;

-- Such a job carries a tag: 'audit', or 'audit:' and who enqueued it. Its entry stands in the transaction that stores it,
-- whoever does. One line, as above.
create trigger {prefix}_audit_in after insert on {prefix}_job_tag when new.tag = 'audit' or new.tag glob 'audit:*' begin insert into {prefix}_audit_entry (at, actor, verb, target, reason, detail) select j.enqueued_at, iif(new.tag = 'audit', 'unknown', substr(new.tag, 7)), 'enqueue', 'job:' || new.id, coalesce(j."trigger", ''), json_object('queue', j.queue, 'task', j.task, 'tenant', j.tenant) from {prefix}_job as j where j.id = new.id; insert into {prefix}_audited (id) values (new.id) on conflict do nothing; end;

-- What the first request of an idempotency key was answered; without an answer it is in flight.
create table {prefix}_answer (
    key blob primary key,
    token integer not null,
    body_hash blob not null,
    status integer not null default 0,
    answer blob,
    at integer not null,
    expires_at integer not null
) strict, without rowid;

create index {prefix}_answer_expires on {prefix}_answer (expires_at);

-- The job with edited arguments that runs in the place of a dead letter, which stays.
alter table {prefix}_dead add column successor integer;

-- All that a list of groups says of a letter: tracebacks stand between the rows of the table.
create index {prefix}_dead_by_error on {prefix}_dead (fingerprint, queue, task, died_at, tenant, enqueued_at, successor);

-- What people say about a group of dead letters; the fingerprint is empty for those without an error.
create table {prefix}_dead_group (
    fingerprint text not null,
    queue text not null,
    task text not null,
    state text not null check (state in ('new', 'acknowledged', 'fixed')),
    owner text,
    note text not null,
    by text not null,
    at integer not null,
    regressed_at integer,
    primary key (fingerprint, queue, task)
) strict, without rowid;

-- Batches of entries, each chained to the one before. A batch is all entries of its range of ids.
create table {prefix}_audit_seal (
    id integer primary key,
    first integer not null,
    last integer not null,
    count integer not null,
    digest blob not null,
    previous blob not null,
    at integer not null
) strict;

-- Where each rule stands for each target: since when its condition disagrees with its state, and its last change.
create table {prefix}_alert (
    rule text not null,
    target text not null,
    state text not null check (state in ('clear', 'firing')),
    change_id integer not null,
    since integer,
    changed_at integer,
    value text not null,
    primary key (rule, target)
) strict, without rowid;

create table {prefix}_alert_change (
    id integer primary key autoincrement,
    rule text not null,
    target text not null,
    state text not null,
    at integer not null,
    value text not null
) strict;

create table {prefix}_alert_delivery (
    change_id integer not null,
    sink text not null,
    state text not null check (state in ('due', 'sent', 'given_up')),
    tries integer not null,
    next_at integer not null,
    last_error text,
    primary key (change_id, sink)
) strict, without rowid;

create index {prefix}_alert_delivery_due on {prefix}_alert_delivery (change_id) where state = 'due';

create table {prefix}_silence (
    id integer primary key autoincrement,
    rule text not null,
    target text not null,
    by text not null,
    reason text not null,
    at integer not null,
    until integer not null
) strict;

create index {prefix}_audit_entry_at on {prefix}_audit_entry (at);

-- What happened per queue and task within a minute (span 1) or an hour (span 60). Durations are of all completed together.
create table {prefix}_tally (
    span integer not null check (span in (1, 60)),
    at integer not null,
    queue text not null,
    task text not null,
    completed integer not null,
    skipped integer not null,
    dead integer not null,
    cancelled integer not null,
    shed integer not null,
    failed integer not null,
    lost integer not null,
    timeout integer not null,
    redelivered integer not null,
    redriven integer not null,
    suppressed integer not null,
    waited integer not null,
    ran integer not null,
    primary key (span, at, queue, task)
) strict, without rowid;

create index {prefix}_attempt_ended on {prefix}_attempt (ended_at);

-- How many jobs of a queue wait in a state that has too many to count them for every look; whoever keeps the samples counts.
create table {prefix}_depth (
    state text not null check (state in ('ready', 'scheduled', 'blocked', 'dead')),
    queue text not null,
    count integer not null,
    extreme integer,
    at integer not null,
    primary key (state, queue)
) strict, without rowid;
