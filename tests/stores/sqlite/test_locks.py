"""Waiting for each other: foreign writers, long readers, our own blocks, and the queue of processes."""

import asyncio
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from duly.core.errors import StoreUnreachable, UsageError
from duly.core.job import NewJob
from duly.stores.faults import Transient
from duly.stores.sqlite.locks import FileQueue
from duly.stores.sqlite.store import SQLiteStore
from duly.stores.sqlite.wake import WakeFile
from tests.stores.sqlite.conftest import Connect, Open, claim, job, put, worker
from tests.waiting import await_until, wait_until

PATIENCE = 10.0


def test_an_enqueue_waits_for_a_foreign_writer_and_then_succeeds(
    store: SQLiteStore, connect: Connect
) -> None:
    foreign = connect(isolation_level=None, check_same_thread=False)
    foreign.execute("begin immediate")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(put, store)
        # It stands in the process queue, which no other engine process can enter meanwhile.
        wait_until(lambda: _is_held(store), what="the enqueue waits")

        assert not waiting.done()
        foreign.execute("rollback")

        assert len(waiting.result(PATIENCE)) == 1


def _is_held(store: SQLiteStore) -> bool:
    path = store.url.removeprefix("sqlite:///")
    queue = FileQueue(f"{path}-lock", WakeFile(f"{path}-probe"))
    try:
        if queue.acquire(time.monotonic()):
            queue.release()
            return False
        return True
    finally:
        queue.close()


def test_a_file_that_stays_locked_is_told_with_the_remedy(open_store: Open, connect: Connect) -> None:
    store = open_store("truncate", busy_timeout=0.2)
    put(store)
    foreign = connect(isolation_level=None, check_same_thread=False)
    foreign.execute("begin immediate")

    with pytest.raises(Transient, match="pass connection=") as caught:
        put(store)

    assert isinstance(caught.value, StoreUnreachable)
    assert not caught.value.outcome_unknown
    foreign.execute("rollback")
    assert len(put(store)) == 1


def test_a_reader_holds_up_a_commit_in_rollback_mode_but_nothing_is_repeated(
    store: SQLiteStore, connect: Connect, sqlite_path: Path
) -> None:
    put(store)
    reader = connect(isolation_level=None, check_same_thread=False)
    reader.execute("begin")
    reader.execute("select count(*) from duly_job").fetchall()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(put, store, 3)
        wait_until(lambda: _refuses_readers(sqlite_path), what="the commit waits for the reader")

        assert not waiting.done()
        reader.execute("commit")
        ids = waiting.result(PATIENCE)

    assert reader.execute("select count(*) from duly_job").fetchone() == (4,)
    assert [record.id for record in store.inspection.lookup(ids) if record] == ids


def _refuses_readers(path: Path) -> bool:
    """Whether a writer waits with its pending lock: then no new reader is let in."""
    probe = sqlite3.connect(path, timeout=0)
    try:
        probe.execute("select count(*) from duly_job").fetchall()
    except sqlite3.OperationalError:
        return True
    finally:
        probe.close()
    return False


def test_a_reader_that_never_ends_is_named(open_store: Open, connect: Connect) -> None:
    store = open_store("truncate", busy_timeout=0.2)
    put(store)
    reader = connect(isolation_level=None)
    reader.execute("begin")
    reader.execute("select count(*) from duly_job").fetchall()

    with pytest.raises(Transient, match="reader keeps it open"):
        put(store)

    reader.execute("rollback")
    assert store.inspection.counts()[0].ready == 1


def test_readers_do_not_hold_up_commits_in_wal_mode(open_store: Open, connect: Connect) -> None:
    store = open_store("wal", busy_timeout=0.5)
    put(store)
    reader = connect(isolation_level=None)
    reader.execute("begin")
    reader.execute("select count(*) from duly_job").fetchall()

    put(store)

    assert reader.execute("select count(*) from duly_job").fetchall() == [(1,)]
    assert store.inspection.counts()[0].ready == 2


def test_enqueueing_beside_an_own_open_block_is_refused_at_once(store: SQLiteStore) -> None:
    with store.transaction() as connection:
        with pytest.raises(UsageError, match="pass connection="):
            put(store)
        (stored,) = store.enqueue_on(connection, [job()])

    assert store.inspection.lookup([stored.id])[0] is not None
    assert len(put(store)) == 1


def test_enqueueing_beside_an_own_open_async_block_is_refused_at_once(store: SQLiteStore) -> None:
    async def scene() -> int:
        async with store.atransaction() as connection:
            with pytest.raises(UsageError, match="pass connection="):
                await asyncio.to_thread(put, store)
            (stored,) = await store.aenqueue_on(connection, [job()])
        return stored.id

    id = asyncio.run(scene())

    assert [count.ready for count in store.inspection.counts()] == [1]
    assert id > 0


def test_another_thread_waits_for_a_block_to_end(store: SQLiteStore) -> None:
    with ThreadPoolExecutor(1) as pool:
        with store.transaction() as connection:
            store.enqueue_on(connection, [job()])
            waiting = pool.submit(put, store)
            assert not waiting.done()

        assert len(waiting.result(PATIENCE)) == 1

    assert store.inspection.counts()[0].ready == 2


def test_a_cancelled_wait_for_a_block_gives_the_lock_back(store: SQLiteStore, connect: Connect) -> None:
    put(store)
    foreign = connect(isolation_level=None)
    foreign.execute("begin immediate")

    async def scene() -> None:
        waiting = asyncio.ensure_future(_enter(store))
        await await_until(lambda: _is_held(store), what="the block waits for the foreign writer")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        foreign.execute("rollback")

    asyncio.run(scene())

    assert len(put(store)) == 1


async def _enter(store: SQLiteStore) -> None:
    async with store.atransaction():
        raise AssertionError("entered after all")


def test_a_block_that_fails_leaves_nothing(store: SQLiteStore) -> None:
    with pytest.raises(ZeroDivisionError), store.transaction() as connection:
        store.enqueue_on(connection, [job()])
        raise ZeroDivisionError

    assert store.inspection.counts() == []
    assert len(put(store)) == 1


def test_threads_that_enqueue_at_once_share_commits(store: SQLiteStore, connect: Connect) -> None:
    put(store)
    foreign = connect(isolation_level=None, check_same_thread=False)
    foreign.execute("begin immediate")
    before = foreign.execute("pragma data_version").fetchone()
    with ThreadPoolExecutor(12) as pool:
        first = pool.submit(put, store)
        wait_until(lambda: _is_held(store), what="the first one leads and waits")
        others = [pool.submit(put, store) for _ in range(11)]
        wait_until(lambda: _threads_waiting() >= 12, what="all wait")
        foreign.execute("rollback")
        ids = [id for done in [first, *others] for id in done.result(PATIENCE)]

    assert len(set(ids)) == 12
    assert store.inspection.counts()[0].ready == 13
    assert before is not None


def _threads_waiting() -> int:
    return sum(thread.name.startswith("ThreadPoolExecutor") for thread in threading.enumerate())


def test_one_bad_piece_of_a_shared_commit_spoils_no_other(store: SQLiteStore, connect: Connect) -> None:
    from duly.stores.faults import DataFault

    foreign = connect(isolation_level=None, check_same_thread=False)
    put(store)
    foreign.execute("begin immediate")
    with ThreadPoolExecutor(3) as pool:
        good = pool.submit(put, store)
        bad = pool.submit(store.jobs.enqueue, [job(task="t" * 201)])
        also = pool.submit(put, store)
        wait_until(lambda: _is_held(store), what="they wait")
        foreign.execute("rollback")

        assert len(good.result(PATIENCE)) == len(also.result(PATIENCE)) == 1
        with pytest.raises(DataFault):
            bad.result(PATIENCE)

    assert store.inspection.counts()[0].ready == 3


def test_who_comes_after_a_leader_that_gave_up_leads_in_turn(open_store: Open, connect: Connect) -> None:
    store = open_store("truncate", busy_timeout=0.5)
    put(store)
    foreign = connect(isolation_level=None, check_same_thread=False)
    foreign.execute("begin immediate")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(put, store)
        wait_until(lambda: _is_held(store), what="the first one leads and waits")
        with pytest.raises(Transient):
            first.result(PATIENCE)
        second = pool.submit(put, store)
        wait_until(lambda: _is_held(store), what="the second one leads and waits")
        foreign.execute("rollback")

        assert len(second.result(PATIENCE)) == 1

    assert store.inspection.counts()[0].ready == 2


def test_an_idle_exchange_takes_no_write_lock(store: SQLiteStore, connect: Connect) -> None:
    incarnation = worker(store)
    claim(store, incarnation)
    foreign = connect(isolation_level=None)
    foreign.execute("begin immediate")

    assert claim(store, incarnation) == ()

    foreign.execute("rollback")


def test_the_process_queue_gives_up_at_its_deadline_and_is_free_after(tmp_path: Path) -> None:
    path = str(tmp_path / "queue")
    wake = WakeFile(str(tmp_path / "wake"))
    holder, second, third = FileQueue(path, wake), FileQueue(path, wake), FileQueue(path, wake)
    assert holder.acquire(time.monotonic())

    assert not second.acquire(time.monotonic() + 0.05)
    holder.release()

    # The abandoned wait may get the lock for an instant, and must give it back.
    assert third.acquire(time.monotonic() + PATIENCE)
    third.release()
    for queue in (holder, second, third):
        queue.close()


# A cache that spills beside a reader waits for it page by page: a minute here.
@pytest.mark.timeout(20)
def test_a_large_batch_needs_the_file_alone_only_for_its_commit(open_store: Open, connect: Connect) -> None:
    store = open_store("truncate", busy_timeout=0.3)
    put(store)
    reader = connect(isolation_level=None)
    reader.execute("begin")
    reader.execute("select count(*) from duly_job").fetchall()
    # More than the cache holds: 60 MB against 32 MB.
    large = NewJob("default", "ok", b'"' + b"x" * 200_000 + b'"')

    with pytest.raises(Transient, match="reader keeps it open"):
        store.jobs.enqueue([large] * 300)

    reader.execute("commit")
    assert store.inspection.counts()[0].ready == 1
