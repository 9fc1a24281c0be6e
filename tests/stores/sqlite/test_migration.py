"""From a file of the first release to this one: its jobs go on, and so does that release while it still runs."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from itertools import product
from pathlib import Path

import pytest

from duly.core.job import ClaimRequest, Counters, Ended, Incarnation, JobId, NewJob, QueueClaim, UniqueKey
from duly.core.keys import unique_digest
from duly.core.lifecycle import Event, Outcome, State
from duly.core.names import key_of
from duly.stores.sqlite.connecting import Journal
from duly.stores.sqlite.statements import migrations
from duly.stores.sqlite.store import SQLiteStore
from duly.testing.clock import FakeClock
from tests.stores.sqlite.conftest import Connect, Open, claim, job, put, worker

# The statements of the first release on the tables that have changed since, word for word.
INSERT_JOB = """
insert into duly_job (
    id, queue, task, args, priority, tenant, tags, correlation_id, attempts, timeout, expires_at, enqueued_at
) values (
    :id, :queue, :task, :args, :priority, :tenant, :tags, :correlation_id, :attempts, :timeout, :expires_at,
    :enqueued_at
)"""
UPSERT_QUEUE = """
insert into duly_queue (name, key, owner) values (:name, :key, :owner)
on conflict (name) do update set owner = excluded.owner"""
UPSERT_TASK = """
insert into duly_task (name, queue) values (:name, :queue)
on conflict (name) do update set queue = excluded.queue"""

SOON = 4_000_000_000_000_000

# state -> the statement that puts a job there, as the first release did
PLACES = {
    State.ready: """
        insert into duly_ready (
            queue, priority, pos, id, task, run, failed, lost, interrupted, snoozed, expires_at, ready_at
        )
        values (:lane, 100, :id, :id, :task, 0, 0, 0, 0, 0, null, 1)""",
    State.scheduled: """
        insert into duly_scheduled (
            id, run_at, queue, task, priority, run, failed, lost, interrupted, snoozed
        )
        values (:id, :soon, :lane, :task, 100, 1, 1, 0, 0, 0)""",
    State.blocked: """
        insert into duly_blocked (
            id, cause, task, queue, priority, pos, run, failed, lost, interrupted, snoozed, since
        )
        values (:id, 1, :task, :lane, 100, :id, 0, 0, 0, 0, 0, 1)""",
    State.running: """
        insert into duly_claimed (
            incarnation, id, run, queue, task, priority, failed, lost, interrupted, snoozed, claimed_at,
            deadline
        )
        values (1, :id, 1, :lane, :task, 100, 0, 0, 0, 0, 1, :soon)""",
    State.dead: """
        insert into duly_dead (
            id, queue, task, tenant, run, failed, lost, interrupted, snoozed, enqueued_at, died_at, reason
        )
        values (:id, 'default', 'ok', '', 3, 3, 0, 0, 0, 1, 2, 'gave up')""",
    State.completed: """
        insert into duly_finished (
            id, queue, queue_key, task, tenant, status, run, failed, lost, interrupted, snoozed,
            enqueued_at, finished_at, result
        )
        values (:id, 'default', :lane, 'ok', '', 'completed', 1, 0, 0, 0, 0, 1, 2, x'37')""",
    State.skipped: """
        insert into duly_finished (
            id, queue, queue_key, task, tenant, status, run, failed, lost, interrupted, snoozed,
            enqueued_at, finished_at
        )
        values (:id, 'default', :lane, 'ok', '', 'skipped', 1, 0, 0, 0, 0, 1, 2)""",
    State.cancelled: """
        insert into duly_finished (
            id, queue, queue_key, task, tenant, status, run, failed, lost, interrupted, snoozed,
            enqueued_at, finished_at
        )
        values (:id, 'default', :lane, 'ok', '', 'cancelled', 1, 0, 0, 0, 0, 1, 2)""",
}
IDS = {state: JobId(at) for at, state in enumerate(PLACES, 1)}


def first_release(connection: sqlite3.Connection) -> None:
    """The tables of the first release, with one job in each state and the worker that runs one."""
    first = migrations("duly")[0]
    connection.execute(
        "create table duly_schema_version (version integer primary key, name text not null, "
        "checksum text not null, applied_at integer not null) strict"
    )
    for statement in first.statements:
        connection.execute(statement)
    connection.execute(
        "insert into duly_schema_version values (?, ?, ?, 0)", (first.version, first.name, first.checksum)
    )
    connection.execute("update duly_seq set value = ?", (len(PLACES),))
    connection.execute(
        "insert into duly_worker (incarnation, beat_at, lease, heartbeat, host, pid, supervisor, queues, tasks, slots,"
        " version, started_at) values (1, 1, 30000000, 5000000, 'h', 1, 's', '[\"default\"]', '{\"ok\": 1000000}', 4,"
        " '1', 1)"
    )
    for state, id in IDS.items():
        insert_job(connection, id)
        connection.execute(PLACES[state], _keys(id))
    connection.commit()


def insert_job(connection: sqlite3.Connection, id: int) -> None:
    values = {"id": id, "queue": "default", "task": "ok", "args": b"{}", "priority": 100, "tenant": ""}
    nothing = dict.fromkeys(("tags", "correlation_id", "attempts", "timeout", "expires_at"))
    connection.execute(INSERT_JOB, {**values, **nothing, "enqueued_at": 1})


def _keys(id: int) -> dict[str, int]:
    return {"id": id, "lane": key_of("default"), "task": key_of("ok"), "soon": SOON}


@pytest.fixture(params=["truncate", "wal"])
def old_file(request: pytest.FixtureRequest, connect: Connect) -> Journal:
    """The journal of a file that the first release has made."""
    connection = connect()
    connection.execute(f"pragma journal_mode = {request.param}").fetchall()
    first_release(connection)
    connection.close()
    journal: Journal = request.param
    return journal


def test_jobs_in_every_state_are_there_after_the_migration(open_store: Open, old_file: Journal) -> None:
    store = open_store(old_file)

    assert (store.schema.version(), store.schema.migrate()) == (
        1,
        ["0002_keys", "0003_control", "0004_operating"],
    )
    assert store.schema.version() == 4

    found = store.inspection.lookup([*IDS.values()])
    assert [record.state for record in found if record] == [*IDS]
    assert {(record.args, record.trigger) for record in found if record} == {(b"{}", None)}


def test_acts_that_earlier_releases_note_are_in_the_audit(
    open_store: Open, old_file: Journal, connect: Connect
) -> None:
    note = "insert into duly_act (at, verb, by, reason, jobs) values (?, ?, ?, ?, ?)"
    with closing(connect()) as connection:
        connection.execute(note, (1_000_000, "run now", "ann", "urgent", 2))
        connection.execute(note, (2_000_000, "pause queue:run fast", "bob", "an outage", 0))
        connection.commit()
    store = open_store(old_file)
    store.schema.migrate()

    with closing(connect()) as connection:
        connection.execute(note, (3_000_000, "run at", "cal", "later", 1))
        connection.execute(note, (4_000_000, "lift queue:mail", "cal", "over", 0))
        connection.commit()

    told = reversed(store.audits.page())
    assert [
        (one.at.timestamp(), one.actor, one.verb, one.target, one.reason, one.detail) for one in told
    ] == [
        (1.0, "ann", "run_now", "", "urgent", '{"jobs":2}'),
        (2.0, "bob", "pause", "queue:run fast", "an outage", "{}"),
        (3.0, "cal", "run_at", "", "later", '{"jobs":1}'),
        (4.0, "cal", "lift", "queue:mail", "over", "{}"),
    ]
    store.audits.seal()
    found = store.audits.verify()
    assert (found.entries, found.faults) == (4, ())


def test_jobs_of_the_first_release_go_on_as_any_other(open_store: Open, old_file: Journal) -> None:
    store = open_store(old_file)
    ended = Ended(IDS[State.running], 1, Event.complete, State.completed, Counters(), result=b"7")
    request = ClaimRequest((QueueClaim("default", 9),), 9, unparked=("ok",))

    ran = store.jobs.exchange(worker(store), [], request).claimed
    answer = store.jobs.exchange(Incarnation(1), [ended], None)
    back = store.operator.redrive([*IDS.values()], "me", "again")
    cancelled = store.operator.cancel([IDS[State.scheduled]], "me", "no more")
    retained = store.upkeep.retain({}, {}, timedelta(0), timedelta(0))

    assert {one.id for one in ran} == {IDS[State.ready], IDS[State.blocked]}
    assert answer.acked == {(IDS[State.running], 1)}
    assert {*back} == {IDS[State.dead], IDS[State.skipped], IDS[State.cancelled]}
    assert cancelled == {IDS[State.scheduled]: State.cancelled}
    # Completed twice and cancelled once.
    assert retained == 3


def test_jobs_under_the_first_releases_keys_of_names_are_found_and_keep_their_order(
    connect: Connect, sqlite_path: Path
) -> None:
    clock = FakeClock()
    with (
        closing(SQLiteStore(sqlite_path, clock=clock, journal="truncate")) as store,
        closing(connect()) as old,
    ):
        store.schema.migrate()
        moved = put(store, 600)
        set_aside = store.jobs.enqueue([job("rare")])[0].id
        incarnation = worker(store)
        claimed = claim(store, incarnation, 700)
        store.leases.retire(incarnation)
        late = put(store, 2)
        # Its keys: of the same names, by another hash.
        for table, column in product(("ready", "blocked"), ("queue", "task")):
            old.execute(f"update duly_{table} set {column} = {column} / 2")
        old.commit()
        incarnation = worker(store, "ok", "rare")
        hidden = claim(store, incarnation, 700)

        store.upkeep.sweep(timedelta(hours=1), 3, timedelta(hours=1))

        request = ClaimRequest((QueueClaim("default", 700),), 700, unparked=("rare",))
        found = store.jobs.exchange(incarnation, [], request).claimed
        assert ([one.id for one in claimed], hidden) == (moved, ())
        assert [one.id for one in found] == [set_aside, *moved, *late]


def test_statements_of_the_first_release_work_on_the_new_tables(store: SQLiteStore, connect: Connect) -> None:
    with closing(connect()) as connection:
        insert_job(connection, 1)
        connection.execute(PLACES[State.ready], _keys(1))
        connection.execute("update duly_seq set value = 1")
        connection.execute(UPSERT_QUEUE, {"name": "mail", "key": key_of("mail"), "owner": "growth"})
        connection.execute(UPSERT_TASK, {"name": "send", "queue": "mail"})
        connection.commit()

    (held,) = claim(store, worker(store))

    assert (held.id, held.trigger, held.has_steps) == (1, None, False)
    assert store.schema.declared() == ({"mail": "growth"}, {"send": "mail"})


def test_a_job_that_the_first_release_claims_gives_its_key_back(store: SQLiteStore, connect: Connect) -> None:
    unique = NewJob("default", "ok", b"{}", unique=UniqueKey(unique_digest("ok", "", "k")))
    (first,) = store.jobs.enqueue([unique])
    with closing(connect()) as connection:
        connection.execute("delete from duly_ready where id = ?", (first.id,))
        connection.execute(PLACES[State.running], _keys(first.id))
        connection.commit()

    (second,) = store.jobs.enqueue([unique])

    assert second.outcome is Outcome.created


def test_the_migration_is_all_or_nothing(open_store: Open, connect: Connect, old_file: Journal) -> None:
    store = open_store(old_file)
    connection = connect()
    # In the way of the last statement but a few.
    connection.execute("create table duly_schedule (mine integer)")
    connection.commit()

    with pytest.raises(sqlite3.OperationalError, match="duly_schedule already exists"):
        store.jobs.enqueue([job()])
    connection.execute("drop table duly_schedule")
    connection.commit()

    assert store.schema.version() == 1
    (stored,) = store.jobs.enqueue([job()])
    assert (stored.id, store.schema.version()) == (len(PLACES) + 1, 4)
