"""Ids and positions: taken ahead by a writer who is alone, in the order of the commits whoever else writes."""

import sqlite3

import pytest

from duly.core.filters import Filter
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.store import SQLiteStore
from tests.stores.sqlite.conftest import Connect, Open, put


def value_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("select value from duly_seq").fetchall()[0][0])


def test_ids_of_a_lone_writer_have_no_gaps(store: SQLiteStore) -> None:
    first = put(store)[0]

    ids = [first, *(id for count in (1, 1, 3, 1, 200, 1, 1) for id in put(store, count))]

    assert ids == list(range(first, first + len(ids)))


def test_a_lone_writer_seldom_writes_the_sequence(store: SQLiteStore, connect: Connect) -> None:
    put(store)
    reader = connect(isolation_level=None)
    seen = set()

    for _ in range(100):
        put(store)
        seen.add(value_of(reader))

    assert len(seen) < 10


def test_ids_ascend_with_the_commits_of_several_writers(
    store: SQLiteStore, open_store: Open, connect: Connect
) -> None:
    other, theirs = open_store(), connect(isolation_level=None)
    ids: list[int] = []

    for turn in range(12):
        for _ in range(turn):
            ids += put(store)
        ids += put(other, 2)
        theirs.execute("begin immediate")
        # As a release does that knows of nothing taken ahead.
        theirs.execute("update duly_seq set value = value + 1")
        ids.append(value_of(theirs))
        theirs.execute("commit")

    assert ids == sorted(set(ids))


def test_numbers_of_a_failed_transaction_are_given_to_nobody_else_at_once(
    store: SQLiteStore, open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [id for _ in range(5) for id in put(store)]

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Database, "_commit", fail)
        with pytest.raises(KeyboardInterrupt):
            put(store, 100)
    ids += put(store) + put(open_store()) + put(store)

    assert ids == sorted(set(ids))


def test_an_operation_leaves_alone_what_comes_after_it(store: SQLiteStore) -> None:
    before = [id for _ in range(20) for id in put(store)]

    operation = store.operator.start_operation("cancel", Filter(), None, None, 20, "ada", "a test")
    after = put(store)

    assert before[-1] <= operation.upto < after[0]
