"""Waking a worker without a lock: the side file for our own commits, SQLite's counter for users' connections."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from duly.stores.sqlite.store import SQLiteStore
from duly.stores.sqlite.wake import WakeFile
from tests.stores.sqlite.conftest import Connect, Open, job, put
from tests.waiting import wait_until

PATIENCE = 10.0


@contextmanager
def _listening(store: SQLiteStore) -> Iterator[threading.Event]:
    rung = threading.Event()
    listener = store.listen(rung.set)
    try:
        yield rung
    finally:
        listener.close()


def test_an_enqueue_rings_listeners_of_this_and_other_stores(store: SQLiteStore, open_store: Open) -> None:
    other = open_store("truncate")
    with _listening(store) as mine, _listening(other) as theirs:
        put(store)

        assert mine.wait(PATIENCE)
        assert theirs.wait(PATIENCE)


@pytest.mark.parametrize("journal", ["truncate", "wal"])
def test_a_commit_of_a_users_connection_rings(open_store: Open, connect: Connect, journal: str) -> None:
    store = open_store(journal)
    put(store)
    connection = connect()
    with _listening(store) as rung:
        store.enqueue_on(connection, [job()])
        connection.commit()

        assert rung.wait(PATIENCE)


def test_a_block_rings_at_its_commit(store: SQLiteStore) -> None:
    with _listening(store) as rung, store.transaction() as connection:
        store.enqueue_on(connection, [job()])

    with _listening(store) as rung:
        with store.transaction() as connection:
            store.enqueue_on(connection, [job()])
        assert rung.wait(PATIENCE)


def test_a_busy_worker_is_rung_again_once_it_is_idle(store: SQLiteStore) -> None:
    rung = threading.Event()
    listener = store.listen(rung.set)
    listener.idle(False)
    put(store)
    listener.idle(True)

    assert rung.wait(PATIENCE)
    listener.close()


def test_a_listener_may_close_itself_from_its_own_call(store: SQLiteStore) -> None:
    closed = threading.Event()

    def close() -> None:
        listener.close()
        closed.set()

    listener = store.listen(close)
    put(store)

    assert closed.wait(PATIENCE)
    wait_until(lambda: not _listeners(), what="the thread has ended")


def _listeners() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "duly-sqlite-listener"]


def test_a_side_file_that_cannot_be_made_costs_nothing_but_time(store: SQLiteStore, tmp_path: Path) -> None:
    wake = WakeFile(str(tmp_path / "missing" / "file"))

    wake.bump()

    assert wake.read() == 0


def test_bumps_are_seen_through_another_mapping(tmp_path: Path) -> None:
    first, second = WakeFile(str(tmp_path / "wake")), WakeFile(str(tmp_path / "wake"))

    first.bump()
    first.bump()

    assert second.read() == 2


def test_who_sleeps_on_the_counter_is_woken_and_not_by_the_time(tmp_path: Path) -> None:
    mine, theirs = WakeFile(str(tmp_path / "wake")), WakeFile(str(tmp_path / "wake"))
    if not theirs.wait(theirs.read(), 0.001):
        pytest.skip("no futex on this system: listeners poll")
    seen, woken = theirs.read(), threading.Event()

    def sleep() -> None:
        while theirs.read() == seen:
            theirs.wait(seen, 600.0)
        woken.set()

    sleeper = threading.Thread(target=sleep, daemon=True)
    sleeper.start()
    mine.bump()
    mine.ring()

    assert woken.wait(PATIENCE)


def test_what_moved_before_one_sleeps_is_not_slept_through(tmp_path: Path) -> None:
    mine, theirs = WakeFile(str(tmp_path / "wake")), WakeFile(str(tmp_path / "wake"))
    seen = theirs.read()
    mine.bump()

    assert theirs.wait(seen, 600.0)


def test_where_one_cannot_sleep_on_the_counter_a_listener_polls(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WakeFile, "wait", lambda self, seen, seconds: False)
    monkeypatch.setattr(WakeFile, "ring", lambda self: None)
    with _listening(store) as rung:
        put(store)

        assert rung.wait(PATIENCE)
