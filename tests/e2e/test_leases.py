"""Leases of real processes: kept by handlers that block, lost by processes that are stopped or cut off."""

import fcntl
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from duly.core.lifecycle import State
from tests.e2e.chores_app import block_loop, hold, hold_the_gil, quick, spin
from tests.e2e.workers import AnyTask, Place, runs
from tests.waiting import wait_until

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    "task", [block_loop, spin, hold_the_gil], ids=["sleeping loop", "spinning thread", "C code"]
)
def test_handlers_that_block_keep_their_lease(place: Place, task: AnyTask) -> None:
    """LS-06."""
    ids = place.enqueue(task, 2, seconds=7)
    place.start(lease=3.0, heartbeat=0.5)
    place.start(lease=3.0, heartbeat=0.5)

    records = place.wait_final(ids, timeout=90)

    assert {(record.state, record.counters.lost) for record in records} == {(State.completed, 0)}
    assert len(place.ledger("started")) == len(place.ledger("ended")) == 2


def test_renewals_arrive_at_least_twice_per_lease(place: Place) -> None:
    """LS-05."""
    ids = place.enqueue(hold, 4)
    place.start(lease=3.0, heartbeat=0.5)
    place.wait_started(*ids)

    ages: list[float] = []

    def looked() -> bool:
        ages.append(place.workers()[0].beat_age.total_seconds())
        return len(ages) > 60

    wait_until(looked, what="60 looks")
    place.release()

    assert max(ages) < 1.5
    assert {record.run for record in place.wait_final(ids)} == {1}


def test_a_worker_that_was_stopped_for_longer_than_its_lease_writes_nothing_stale(any_place: Place) -> None:
    place = any_place
    id = place.enqueue_one(hold)
    stopped = place.start(lease=3.0, heartbeat=0.5)
    (line,) = place.wait_started(id)

    _stop_outside_a_transaction(place, stopped.pid, line.pid)
    place.start(lease=3.0, heartbeat=0.5)
    (again,) = place.wait_started(id, attempt=2)
    for pid in (line.pid, stopped.pid):
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: "stops its handlers" in stopped.log, what="the fence of the first worker")
    wait_until(lambda: not runs(line.pid), what="the end of the stopped process")
    place.release()

    (record,) = place.wait_final([id])
    assert (record.state, record.counters.lost, record.counters.failed) == (State.completed, 1, 0)
    assert [end.pid for end in place.ledger("ended", id)] == [again.pid]
    # The first worker goes on with a new process.
    other = place.enqueue(quick, 20)
    assert {done.state for done in place.wait_final(other)} == {State.completed}


def test_a_child_that_is_stopped_alone_is_killed_after_a_lease_and_replaced(place: Place) -> None:
    id = place.enqueue_one(hold)
    worker = place.start(lease=3.0, heartbeat=0.5)
    (line,) = place.wait_started(id)

    os.kill(line.pid, signal.SIGSTOP)
    place.wait_started(id, attempt=2)
    place.release()

    (record,) = place.wait_final([id])
    assert (record.state, record.counters.lost) == (State.completed, 1)
    assert "stopped for longer than its lease" in worker.log
    assert worker.stop() == 0


def test_a_process_ends_its_handlers_by_itself_when_its_supervisor_stands_still(place: Place) -> None:
    id = place.enqueue_one(hold)
    worker = place.start(lease=3.0, heartbeat=0.5)
    (line,) = place.wait_started(id)

    _stop_outside_a_transaction(place, worker.pid)
    wait_until(lambda: not runs(line.pid), what="the end of the process nobody beats for")
    place.start(lease=3.0, heartbeat=0.5)
    wait_until(lambda: len(place.ledger("started", id)) == 2, timeout=60, what="the next start")
    worker.signal(signal.SIGCONT)
    place.release()

    (record,) = place.wait_final([id])
    first, second = place.ledger("started", id)
    assert (record.state, record.counters.failed) == (State.completed, 0)
    # The first run was over before the lease was.
    assert second.at - first.at > 2.0
    assert len(place.ledger("ended", id)) == 1


def test_an_operator_drains_a_worker_and_its_supervisor_replaces_it(place: Place) -> None:
    id = place.enqueue_one(hold)
    worker = place.start()
    (line,) = place.wait_started(id)
    (row,) = place.wait_workers()

    assert place.store.operator.drain_worker(row.incarnation, "ann", "maintenance")
    wait_until(lambda: "stopping (an operator asked for it)" in worker.log, what="the drain")
    other = place.enqueue_one(quick)
    (ran,) = wait_until(lambda: place.ledger("ran", other), what="the other job")
    place.release()

    assert ran.pid != line.pid
    assert place.wait_final([id])[0].run == 1
    wait_until(lambda: not runs(line.pid), what="the end of the drained process")
    assert worker.stop() == 0


def _stop_outside_a_transaction(place: Place, *pids: int) -> None:
    """SIGSTOP them at a moment when none of them holds a lock of a SQLite file: nobody else could work on."""
    path = place.url.removeprefix("sqlite:///")

    def stopped() -> bool:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: all(map(_stands, pids)), what=f"the stop of every thread of {pids}")
        if not place.url.startswith("sqlite") or _is_free(path):
            return True
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        return False

    wait_until(stopped, what="a stop outside a transaction")


def _stands(pid: int) -> bool:
    # The signal is sent when kill() returns; threads on other cores go on for a moment.
    stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


def _is_free(path: str) -> bool:
    with Path(f"{path}-lock").open() as file, closing(sqlite3.connect(path, timeout=0)) as connection:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Readers hold up writers, too.
            connection.execute("begin exclusive")
            connection.rollback()
        except (BlockingIOError, sqlite3.OperationalError):
            return False
    return True
