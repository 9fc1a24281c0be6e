"""Blocks whose connection is kept for the next: the one writer of a server's requests opens many a second."""

import sqlite3

import pytest

from duly.stores.sqlite.store import SQLiteStore
from tests.stores.sqlite.conftest import Connect, Open, job


def test_a_kept_connection_is_used_again_and_each_block_is_a_transaction_of_its_own(
    store: SQLiteStore,
) -> None:
    stored = []
    used = []
    for _ in range(3):
        with store.transaction(kept=True) as connection:
            used.append(connection)
            stored += store.enqueue_on(connection, [job()])
    with store.transaction() as other:
        pass

    assert used == [used[0]] * 3
    assert other is not used[0]
    assert [record and record.id for record in store.inspection.lookup([one.id for one in stored])] == [
        one.id for one in stored
    ]


def test_a_kept_block_that_fails_leaves_nothing_and_its_connection_is_not_used_again(
    store: SQLiteStore,
) -> None:
    with pytest.raises(ZeroDivisionError), store.transaction(kept=True) as failed:
        (stored,) = store.enqueue_on(failed, [job()])
        raise ZeroDivisionError
    with store.transaction(kept=True) as connection:
        (after,) = store.enqueue_on(connection, [job()])

    assert connection is not failed
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        failed.execute("select 1")
    assert [record is not None for record in store.inspection.lookup([after.id])] == [True]
    # The number was given back with the rest of it.
    assert after.id == stored.id


def test_a_kept_connection_waits_for_a_foreign_writer_as_ours_does(
    open_store: Open, connect: Connect
) -> None:
    store = open_store("truncate", busy_timeout=0.3)
    for _ in range(2):
        with store.transaction(kept=True) as connection:
            store.enqueue_on(connection, [job()])
    foreign = connect(isolation_level=None, check_same_thread=False)
    foreign.execute("begin immediate")

    with pytest.raises(Exception, match="pass connection="), store.transaction(kept=True):
        pass
    foreign.execute("rollback")

    with store.transaction(kept=True) as connection:
        assert store.enqueue_on(connection, [job()])


def test_a_store_that_is_closed_leaves_no_kept_connection(store: SQLiteStore) -> None:
    with store.transaction(kept=True) as connection:
        store.enqueue_on(connection, [job()])

    store.close()

    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("select 1")
