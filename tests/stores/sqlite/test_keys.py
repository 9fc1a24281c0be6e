"""Keys on one file: in transactions that end badly, left behind by an older release, and what they cost others."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from duly.core.errors import KeyReused
from duly.core.job import Ended, NewJob, Stored, UniqueKey
from duly.core.keys import idempotency_digest, once_digest, unique_digest
from duly.core.lifecycle import Event, Outcome, State
from duly.stores.sqlite.store import SQLiteStore
from duly.testing.clock import FakeClock
from tests.stores.sqlite.conftest import Connect, Open, claim, exists, job, log_statements, put, worker
from tests.stores.sqlite.processes import complete

KEY = unique_digest("ok", "", "order:7")
LEFT = 2_500


def keyed(args: bytes = b"{}", *, live: bool = False, replace: bool = False) -> NewJob:
    """With both kinds of keys, the same each time."""
    return NewJob(
        "default",
        "ok",
        args,
        idempotency=idempotency_digest("ok", "", "request:7"),
        unique=UniqueKey(KEY, live, replace),
    )


def unique(*, live: bool = False) -> NewJob:
    return NewJob("default", "ok", b"{}", unique=UniqueKey(KEY, live))


def enqueue(store: SQLiteStore, job: NewJob) -> Stored:
    (stored,) = store.jobs.enqueue([job])
    return stored


@pytest.fixture
def inside(connect: Connect) -> sqlite3.Connection:
    """A user's connection inside a transaction."""
    connection = connect(isolation_level=None)
    connection.execute("begin immediate")
    return connection


def test_a_rollback_to_a_savepoint_frees_the_keys(store: SQLiteStore, inside: sqlite3.Connection) -> None:
    inside.execute("savepoint mine")
    (gone,) = store.enqueue_on(inside, [keyed()])
    inside.execute("rollback to mine")
    (kept,) = store.enqueue_on(inside, [keyed(b'{"n":2}')])
    (again,) = store.enqueue_on(inside, [keyed(b'{"n":2}')])
    inside.execute("commit")

    assert [one.outcome for one in (gone, kept, again)] == [
        Outcome.created,
        Outcome.created,
        Outcome.duplicate,
    ]
    assert again.id == kept.id
    assert enqueue(store, keyed(b'{"n":2}')) == Stored(kept.id, Outcome.duplicate)


def test_a_rollback_of_the_transaction_frees_the_keys(store: SQLiteStore, inside: sqlite3.Connection) -> None:
    store.enqueue_on(inside, [keyed()])
    assert store.once_on(inside, once_digest("k"), timedelta(hours=1))
    inside.execute("rollback")

    assert enqueue(store, keyed(b'{"n":2}')).outcome is Outcome.created
    assert store.keys.once(once_digest("k"), timedelta(hours=1))
    assert not store.keys.once(once_digest("k"), timedelta(hours=1))


def test_a_rolled_back_replacement_leaves_the_job_that_waits(
    store: SQLiteStore, inside: sqlite3.Connection
) -> None:
    inside.execute("rollback")
    first = enqueue(store, unique())
    inside.execute("begin immediate")
    other = NewJob("default", "ok", b'{"n":2}', unique=UniqueKey(KEY, replace=True))
    (second,) = store.enqueue_on(inside, [other])
    inside.execute("rollback")

    (record,) = store.inspection.lookup([first.id])
    assert record is not None
    assert (second.outcome, record.state, record.reason) == (Outcome.created, State.ready, None)
    assert enqueue(store, unique()) == Stored(first.id, Outcome.duplicate)


def test_a_reused_key_leaves_the_callers_transaction_as_it_was(
    store: SQLiteStore, inside: sqlite3.Connection
) -> None:
    (kept,) = store.enqueue_on(inside, [keyed()])
    with pytest.raises(KeyReused) as refusal:
        store.enqueue_on(inside, [job(), keyed(b'{"n":2}')])
    (after,) = store.enqueue_on(inside, [job()])
    inside.execute("commit")

    assert (refusal.value.job_id, refusal.value.position) == (kept.id, 1)
    assert exists(store, [kept.id, after.id]) == [True, True]
    assert store.inspection.counts()[0].ready == 2


def test_a_duplicate_may_be_looked_up_inside_the_transaction_that_made_the_first(
    store: SQLiteStore, inside: sqlite3.Connection
) -> None:
    (first,) = store.enqueue_on(inside, [unique()])
    (second,) = store.enqueue_on(inside, [unique()])

    (record,) = store.lookup_on(inside, [second.id])
    assert record is not None
    assert (record.id, record.state) == (first.id, State.ready)
    assert exists(store, [first.id]) == [False]


def test_a_duplicate_tells_when_the_job_that_stands_for_it_is_due(store: SQLiteStore) -> None:
    first = enqueue(store, replace(keyed(), delay=timedelta(hours=1)))
    second, third = store.jobs.enqueue([keyed(), unique()])

    assert first.run_at is not None
    assert [second, third] == [Stored(first.id, Outcome.duplicate, first.run_at)] * 2


def test_a_cancelled_job_gives_its_key_back_in_the_callers_transaction(
    store: SQLiteStore, inside: sqlite3.Connection
) -> None:
    (first,) = store.enqueue_on(inside, [unique(live=True)])
    assert store.cancel_on(inside, [first.id], "me", "wrong order") == {first.id: State.cancelled}
    (second,) = store.enqueue_on(inside, [unique(live=True)])
    inside.execute("commit")

    assert second.outcome is Outcome.created
    assert exists(store, [first.id, second.id]) == [True, True]


@pytest.mark.parametrize("live", [False, True])
def test_a_key_whose_job_an_older_release_has_claimed_or_completed_is_free(
    store: SQLiteStore, connect: Connect, live: bool
) -> None:
    first = enqueue(store, unique(live=live))
    incarnation = worker(store)
    (held,) = claim(store, incarnation)
    if live:
        store.jobs.exchange(
            incarnation, [Ended(held.id, held.run, Event.complete, State.completed, held.counters)], None
        )
    # As if nobody had known of the key.
    _leave_keys(connect(), [(KEY, first.id, live)])

    second = enqueue(store, unique(live=live))

    assert second.outcome is Outcome.created
    assert enqueue(store, unique(live=live)) == Stored(second.id, Outcome.duplicate)


def test_the_sweep_removes_the_keys_that_an_older_release_left(
    store: SQLiteStore, connect: Connect, sqlite_path: Path
) -> None:
    holder, running = enqueue(store, unique()), put(store)[0]
    claim(store, worker(store), 2)
    held = enqueue(store, unique(live=True))
    connection = connect()
    _leave_keys(connection, [(b"running", running, True)])
    _leave_keys(connection, [(b"%d" % n, 1_000_000 + n, n % 2) for n in range(LEFT)])
    _leave_keys(connection, [(b"claimed", holder.id, False)])

    clock = FakeClock()
    with closing(SQLiteStore(sqlite_path, clock=clock, journal="truncate")) as sweeping:
        for _ in range(4):
            clock.advance(timedelta(minutes=2))
            assert sweeping.upkeep.sweep(timedelta(hours=1), 3, timedelta(days=10_000)).ran

    left = connection.execute("select key, id from duly_unique_key order by id").fetchall()
    assert left == [(b"running", running), (KEY, held.id)]


def test_plain_jobs_touch_no_table_of_keys_follow_ups_or_steps(
    open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    log_statements(monkeypatch, ran)
    store = open_store("truncate")
    store.schema.migrate()
    ran.clear()

    put(store, 3)
    incarnation = worker(store)
    complete(store, incarnation, 3)

    tables = ("unique_key", "idempotency", "newest", "follow", "step", "blob")
    text = "\n".join(ran)
    assert "duly_claimed" in text
    assert "duly_finished" in text
    assert [table for table in tables if f"duly_{table}" in text] == []


def test_a_follow_up_that_cannot_be_stored_does_not_keep_its_parent_from_ending(store: SQLiteStore) -> None:
    follow = NewJob("default", "ok", b"{}", unique=UniqueKey(KEY), version=2**70)
    (parent,) = store.jobs.enqueue([NewJob("default", "ok", b"{}", then=(job(), follow))])

    acked = complete(store, worker(store), 1)

    (record,) = store.inspection.lookup([parent.id])
    assert record is not None
    assert (acked, record.state, store.inspection.counts()) == ([parent.id], State.completed, [])
    assert "its follow-ups were not enqueued" in (record.note or "")


def test_no_key_is_left_once_a_batch_of_all_kinds_has_completed(store: SQLiteStore, connect: Connect) -> None:
    me = worker(store)
    queued, live, versioned = [
        NewJob("default", "ok", b"{}", unique=UniqueKey(bytes([number]) * 16, live=number > 0))
        for number in range(3)
    ]
    store.jobs.enqueue([queued, live, replace(versioned, version=1), job()])
    held = claim(store, me, 10)
    with closing(connect()) as reader:
        kept = reader.execute("select count(*) from duly_unique_key").fetchall()

    ended = [Ended(one.id, one.run, Event.complete, State.completed, one.counters) for one in held]
    store.jobs.exchange(me, ended, None)

    with closing(connect()) as reader:
        left = reader.execute("select count(*) from duly_unique_key").fetchall()
    assert (kept, left) == ([(2,)], [(0,)])


def _leave_keys(connection: sqlite3.Connection, keys: list[tuple[bytes, int, int | bool]]) -> None:
    connection.executemany("insert or replace into duly_unique_key (key, id, live) values (?, ?, ?)", keys)
    connection.commit()
