"""Connections that callers hand in: which are taken, which are refused, and what they may be set to."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from duly.core.errors import ConnectionMismatch, UsageError
from duly.core.job import NewJob
from duly.core.lifecycle import Event, State
from duly.stores.sqlite.store import SQLiteStore
from duly.testing.conformance.bench import ended
from tests.stores.sqlite.conftest import Connect, Open, claim, exists, job, put, worker


def test_a_job_lives_and_dies_with_the_callers_transaction(store: SQLiteStore, connect: Connect) -> None:
    connection = connect(isolation_level=None)
    connection.execute("create table orders (n integer)")

    connection.execute("begin immediate")
    connection.execute("insert into orders values (1)")
    (kept,) = store.enqueue_on(connection, [job()])
    connection.execute("commit")
    connection.execute("begin immediate")
    (gone,) = store.enqueue_on(connection, [job(task="other")])
    connection.execute("rollback")

    assert exists(store, [kept.id]) == [True]
    assert [record.task for record in store.inspection.lookup([gone.id]) if record] == []


def test_legacy_mode_begins_and_the_caller_commits(store: SQLiteStore, connect: Connect) -> None:
    connection = connect()

    (stored,) = store.enqueue_on(connection, [job()])

    assert connection.in_transaction
    assert exists(store, [stored.id]) == [False]
    connection.commit()
    assert exists(store, [stored.id]) == [True]


def test_legacy_mode_joins_what_the_caller_has_begun(store: SQLiteStore, connect: Connect) -> None:
    connection = connect()
    connection.execute("create table orders (n integer)")
    connection.execute("insert into orders values (1)")

    (stored,) = store.enqueue_on(connection, [job()])
    connection.rollback()

    assert exists(store, [stored.id]) == [False]
    assert connection.execute("select count(*) from orders").fetchone() == (0,)


def test_autocommit_without_a_transaction_stores_at_once_and_says_so(
    store: SQLiteStore, connect: Connect
) -> None:
    connection = connect(isolation_level=None)

    (stored,) = store.enqueue_on(connection, [job()])

    assert not connection.in_transaction
    assert (stored.pending, exists(store, [stored.id])) == (False, [True])


@pytest.mark.parametrize("level", [None, "DEFERRED"])
def test_what_cannot_be_stored_leaves_no_transaction_of_ours_open(
    level: str | None, store: SQLiteStore, connect: Connect
) -> None:
    from duly.stores.faults import DataFault

    connection = connect(isolation_level=level)

    with pytest.raises(DataFault):
        store.enqueue_on(connection, [job(), job(task="t" * 201)])

    assert not connection.in_transaction
    assert store.inspection.counts() == []


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the autocommit attribute came with Python 3.12")
def test_the_newer_autocommit_attribute_is_understood(store: SQLiteStore, connect: Connect) -> None:
    at_once, standard = connect(autocommit=True), connect(autocommit=False)

    (stored,) = store.enqueue_on(at_once, [job()])
    (kept,) = store.enqueue_on(standard, [job()])
    standard.commit()
    (gone,) = store.enqueue_on(standard, [job(task="other")])
    standard.rollback()

    assert (stored.pending, kept.pending) == (False, True)
    assert exists(store, [stored.id, kept.id]) == [True, True]
    assert exists(store, [gone.id]) == [False]


def test_a_connection_to_another_file_is_refused(store: SQLiteStore, tmp_path: Path) -> None:
    with (
        closing(sqlite3.connect(tmp_path / "other.db")) as other,
        pytest.raises(ConnectionMismatch, match=r"other\.db and the store is"),
    ):
        store.enqueue_on(other, [job()])


def test_a_database_in_memory_is_refused(store: SQLiteStore) -> None:
    with (
        closing(sqlite3.connect(":memory:")) as memory,
        pytest.raises(ConnectionMismatch, match="in memory"),
    ):
        store.enqueue_on(memory, [job()])


def test_an_attached_file_is_refused(store: SQLiteStore, tmp_path: Path, sqlite_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "main.db")) as connection:
        connection.execute("attach database ? as jobs", (str(sqlite_path),))

        with pytest.raises(ConnectionMismatch, match="ATTACH"):
            store.enqueue_on(connection, [job()])


def test_the_same_file_by_another_name_is_taken(
    store: SQLiteStore, tmp_path: Path, sqlite_path: Path
) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(sqlite_path)

    with closing(sqlite3.connect(link)) as connection:
        (stored,) = store.enqueue_on(connection, [job()])
        connection.commit()

    assert exists(store, [stored.id]) == [True]


@pytest.mark.parametrize("stranger", [object(), "sqlite:///x.db", 7])
def test_anything_but_the_modules_connection_is_refused(store: SQLiteStore, stranger: object) -> None:
    with pytest.raises(ConnectionMismatch, match="is no connection that can carry jobs"):
        store.enqueue_on(stranger, [job()])


def test_a_closed_connection_is_refused(store: SQLiteStore, connect: Connect) -> None:
    connection = connect()
    connection.close()

    with pytest.raises(ConnectionMismatch, match="cannot be used here"):
        store.enqueue_on(connection, [job()])


class _OddCursor(sqlite3.Cursor):
    def execute(self, *_: object) -> "_OddCursor":
        raise AssertionError("the caller's cursor was used")


class _OddConnection(sqlite3.Connection):
    def cursor(self, factory: object = None) -> sqlite3.Cursor:  # type: ignore[override]
        return _OddCursor(self)


def test_row_and_text_factories_of_the_caller_do_not_matter(store: SQLiteStore, connect: Connect) -> None:
    incarnation = worker(store)
    (id,) = put(store)
    (claimed,) = claim(store, incarnation)
    connection = connect(factory=_OddConnection)
    connection.row_factory = sqlite3.Row
    connection.text_factory = bytes

    (stored,) = store.enqueue_on(
        connection, [NewJob("default", "ok", b"{}", tags=("a",), correlation_id="c")]
    )
    assert store.complete_on(connection, incarnation, ended(claimed, Event.complete, result=b"1"))
    connection.commit()

    assert connection.text_factory is bytes
    assert connection.row_factory is sqlite3.Row
    done, new = store.inspection.lookup([id, stored.id])
    assert done is not None
    assert new is not None
    assert (done.state, done.queue, done.result) == (State.completed, "default", b"1")
    assert (new.queue, new.tags, new.correlation_id) == ("default", ("a",), "c")


def test_a_deferred_transaction_that_has_read_is_told_to_begin_immediate(
    open_store: Open, connect: Connect
) -> None:
    for journal in ("truncate", "wal"):
        store = open_store(journal)
        put(store)
        connection = connect(isolation_level=None)
        connection.execute("begin")
        connection.execute("select count(*) from duly_job").fetchall()
        writer = connect(isolation_level=None)
        writer.execute("begin immediate")

        with pytest.raises(UsageError, match="BEGIN IMMEDIATE"):
            store.enqueue_on(connection, [job()])

        assert connection.in_transaction
        connection.execute("rollback")
        writer.execute("rollback")


def test_a_deferred_transaction_that_has_not_read_waits_its_turn(
    store: SQLiteStore, connect: Connect
) -> None:
    connection = connect(isolation_level=None)

    connection.execute("begin")
    (stored,) = store.enqueue_on(connection, [job()])
    connection.execute("commit")

    assert exists(store, [stored.id]) == [True]


def test_a_refused_row_leaves_the_callers_own_writes(store: SQLiteStore, connect: Connect) -> None:
    from duly.stores.faults import DataFault

    connection = connect(isolation_level=None)
    connection.execute("create table orders (n integer)")
    connection.execute("begin immediate")
    connection.execute("insert into orders values (1)")

    with pytest.raises(DataFault):
        store.enqueue_on(connection, [job(), job(task="t" * 201)])

    connection.execute("commit")
    assert connection.execute("select count(*) from orders").fetchone() == (1,)
    assert store.inspection.counts() == []


def test_enqueueing_without_the_connection_beside_it_is_refused_at_once(
    store: SQLiteStore, connect: Connect
) -> None:
    connection = connect()
    store.enqueue_on(connection, [job()])

    with pytest.raises(UsageError, match="pass connection="):
        put(store)

    connection.commit()
    assert len(put(store)) == 1


def test_enqueueing_beside_an_own_connection_that_was_never_passed_is_refused_with_the_line(
    store: SQLiteStore, connect: Connect
) -> None:
    put(store)
    connection = connect(isolation_level=None)
    connection.execute("begin immediate")

    with pytest.raises(UsageError, match=r"pass connection=.*\.py:\d+\)"):
        put(store)

    connection.execute("rollback")
    assert len(put(store)) == 1


def test_a_connection_to_another_file_holds_up_nobody(store: SQLiteStore, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db", isolation_level=None)) as other:
        other.execute("begin immediate")

        assert len(put(store)) == 1


def test_a_connection_dropped_without_a_word_blocks_nothing(store: SQLiteStore, sqlite_path: Path) -> None:
    connection = sqlite3.connect(sqlite_path)
    store.enqueue_on(connection, [job()])

    del connection

    assert len(put(store)) == 1
    assert store.inspection.counts()[0].ready == 1


def test_a_first_enqueue_within_an_open_transaction_makes_the_tables_with_it(
    open_store: Open, connect: Connect
) -> None:
    store = open_store("truncate", busy_timeout=0.5)
    connection = connect(isolation_level=None)
    connection.execute("create table orders (n integer)")

    connection.execute("begin immediate")
    connection.execute("insert into orders values (1)")
    store.enqueue_on(connection, [job()])
    connection.execute("rollback")

    assert store.schema.version() == 0
    connection.execute("begin immediate")
    (stored,) = store.enqueue_on(connection, [job()])
    connection.execute("commit")
    assert exists(store, [stored.id]) == [True]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the autocommit attribute came with Python 3.12")
def test_the_transaction_that_is_always_open_is_not_taken_for_a_forgotten_one(
    store: SQLiteStore, connect: Connect
) -> None:
    connection = connect(autocommit=False)
    store.enqueue_on(connection, [job()])

    connection.commit()

    assert connection.in_transaction
    assert len(put(store)) == 1
