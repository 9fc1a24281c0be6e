"""Stopping: what arrives meanwhile, a store that is slow or away at that very moment, and a signal too many."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import psycopg
import pytest

from duly import App
from duly.core.job import JobId
from duly.core.lifecycle import Event, State
from duly.worker.embedded import Embedded
from duly.worker.options import WorkerOptions
from tests.e2e import test_endings, test_kills, test_shutdown, test_time_to_run
from tests.e2e.chores_app import block_loop, hold, quick, raising_isolated, spin
from tests.e2e.workers import Place, a_place
from tests.scenarios.inside import answers, record_of
from tests.services import PostgresServer
from tests.waiting import wait_until

QUICK = WorkerOptions(poll=timedelta(seconds=0.05), grace=timedelta(seconds=5))


@pytest.fixture
def place(url: str, tmp_path: Path) -> Iterator[Place]:
    with a_place(url, tmp_path) as made:
        yield made


@pytest.fixture
def server_place(postgres_database: str, tmp_path: Path) -> Iterator[Place]:
    with a_place(postgres_database, tmp_path) as made:
        yield made


def turn_until(moment: float) -> None:
    """The offset between two events is the point here: not a wait for something to become true."""
    while time.monotonic() < moment:
        pass


def at_random(chance: random.Random, act: Callable[[], object], other: Callable[[], object]) -> None:
    """Both acts, each up to 20 ms after now."""
    now = time.monotonic()
    first, second = (now + chance.uniform(0, 0.02) for _ in range(2))

    def later() -> None:
        turn_until(second)
        other()

    beside = threading.Thread(target=later)
    beside.start()
    turn_until(first)
    act()
    beside.join()


def test_a_job_that_arrives_during_the_stop_is_left_alone_or_given_back(jobs: App) -> None:
    @jobs.task
    def work() -> None: ...

    chance, rounds = random.Random(5), 15
    ids: list[JobId] = []

    def enqueue() -> None:
        ids.append(work.enqueue().id)

    for _ in range(rounds):
        worker = Embedded(jobs, QUICK)
        worker.__enter__()
        at_random(chance, partial(worker.__exit__, None, None, None), enqueue)
        records = [record_of(jobs, id) for id in ids]
        assert {record.state for record in records} <= {State.ready, State.completed}
        assert {(record.counters.failed, record.counters.lost) for record in records} == {(0, 0)}

    with Embedded(jobs, QUICK) as last:
        last.until_idle(20)
    assert [record_of(jobs, id).state for id in ids] == [State.completed] * rounds
    for id in ids:
        assert {attempt.event for attempt in jobs.store.inspection.attempts(id)} <= {
            Event.interrupt,
            Event.complete,
        }


def test_a_job_that_arrives_during_a_pause_is_left_alone_or_runs_once(jobs: App) -> None:
    runs: list[int] = []

    @jobs.task
    def work(n: int) -> None:
        runs.append(n)

    chance, rounds = random.Random(6), 40
    ids: list[JobId] = []

    def enqueue(n: int) -> None:
        ids.append(work.enqueue(n).id)

    with Embedded(jobs, QUICK) as worker:
        for n in range(rounds):
            at_random(
                chance,
                lambda: jobs.operate.pause("default", reason="incident"),
                partial(enqueue, n),
            )
            # A claim that was under way when the pause came may still take what it finds, and runs it.
            wait_until(lambda: settled(jobs, ids[-1]))
            enqueue(rounds + n)
            wait_until(lambda: settled(jobs, ids[-1]))
            enqueue(2 * rounds + n)
            assert record_of(jobs, ids[-1]).state is State.ready
            jobs.operate.resume("default")
        worker.until_idle(20)

    records = [record_of(jobs, id) for id in ids]
    assert {(record.state, record.run) for record in records} == {(State.completed, 1)}
    assert sorted(runs) == list(range(3 * rounds))


def settled(jobs: App, id: JobId) -> bool:
    return record_of(jobs, id).state is not State.running


@contextmanager
def nobody_writes(url: str) -> Iterator[None]:
    """Each write of an end waits until the block is left."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
            connection.execute("begin immediate")
            yield
            connection.execute("rollback")
    else:
        with psycopg.connect(url) as server:
            server.execute("lock table duly.claimed in exclusive mode")
            yield
            server.rollback()


@pytest.mark.process
def test_a_second_signal_in_the_middle_of_slow_writes_loses_no_job(place: Place) -> None:
    ids = place.enqueue(hold, 20)
    worker = place.start(grace=0.5)
    place.wait_started(*ids)

    with nobody_writes(place.url):
        worker.signal(signal.SIGTERM)
        wait_until(lambda: "the grace is over" in worker.log, what="the end of the grace")
        blocked_from = time.monotonic()
        worker.signal(signal.SIGTERM)
        wait_until(lambda: time.monotonic() > blocked_from + 0.5)
        assert {place.job(id).state for id in ids} == {State.running}

    assert worker.wait() == 0
    records = [place.job(id) for id in ids]
    assert {record.state for record in records} == {State.ready}
    assert {(record.counters.failed, record.counters.lost) for record in records} == {(0, 0)}
    assert place.workers() == []


@pytest.mark.process
def test_what_cannot_be_given_back_at_the_stop_is_named_and_comes_back_by_its_lease(
    server_place: Place, postgres: PostgresServer
) -> None:
    place = server_place
    ids = place.enqueue(hold, 3)
    worker = place.start(grace=0.3, lease=2.0, heartbeat=0.3)
    place.wait_started(*ids)

    postgres.halt("immediate")
    try:
        worker.signal(signal.SIGTERM)
        worker.wait(timeout=90)
    finally:
        postgres.resume()
    wait_until(lambda: answers(place.store), timeout=30)
    place.start(lease=2.0, heartbeat=0.3)
    place.release()

    records = place.wait_final(ids)
    assert {record.state for record in records} == {State.completed}
    assert {record.counters.failed for record in records} == {0}
    named = [line for line in worker.log.splitlines() if "could not be written" in line]
    assert all(any(str(id) in line for line in named) for id in ids), worker.log


@pytest.mark.process
def test_a_worker_that_stops_keeps_its_lease_until_its_last_job_ends(place: Place) -> None:
    id = place.enqueue_one(hold)
    stopping = place.start(lease=2.4, heartbeat=0.3, grace=60.0)
    (line,) = place.wait_started(id)
    place.start(lease=2.4, heartbeat=0.3)
    place.wait_workers(2)

    stopping.signal(signal.SIGTERM)
    # The supervisor's word and that of its process.
    wait_until(lambda: stopping.log.count("stopping") == 2, what="the stop")
    late = place.enqueue_one(quick)
    place.wait_final([late])
    seen = beats(place)
    # More than a lease after the stop, with somebody there who would take over.
    wait_until(
        lambda: all(beats(place).get(one, 0) >= beat + 10 for one, beat in seen.items()), what="ten beats"
    )
    place.release()

    (record,) = place.wait_final([id])
    assert stopping.wait() == 0
    assert (record.state, record.run) == (State.completed, 1)
    assert place.ledger("ran", late)[0].pid != line.pid


@pytest.mark.process
def test_a_worker_that_cannot_start_at_all_says_so_by_its_exit_code(tmp_path: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "duly", "worker", "tests.e2e.chores_app:jobs"],
        env={**os.environ, "DULY_URL": "postgresql://127.0.0.1:1/nowhere", "CHORES": str(tmp_path)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=50,
    )

    assert done.returncode == 5
    assert "cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.process
def test_a_killed_process_among_four_is_replaced_and_the_others_never_notice(place: Place) -> None:
    worker = place.start(processes=4, lease=30.0, heartbeat=5.0)
    before = {row.pid for row in place.wait_workers(4, timeout=120)}
    ids = [place.enqueue_one(hold)]
    lines = place.wait_started(*ids)
    while len({line.pid for line in lines}) < 2:
        assert len(ids) < 60, "one process takes every job"
        ids += place.enqueue(hold, 3)
        lines = place.wait_started(*ids)
    victim = lines[0].pid
    hit = {line.id for line in lines if line.pid == victim}

    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: victim not in {row.pid for row in place.workers()}, what="the end of what it held")
    # Besides the replacement, a process of its own may run what the dead one was lost with.
    after = wait_until(
        lambda: pids if len(pids := {row.pid for row in place.workers()}) >= 4 else set(),
        timeout=30,
        what="four workers again",
    )
    place.release()

    records = place.wait_final(ids)
    assert before - {victim} <= after
    assert {record.state for record in records} == {State.completed}
    assert {record.id for record in records if record.counters.lost} == hit
    assert {record.run for record in records if record.id not in hit} == {1}
    assert worker.process.poll() is None
    assert worker.stop() == 0


def beats(place: Place) -> dict[int, int]:
    return {beat.incarnation: beat.beat for beat in place.store.leases.beats()}


@pytest.mark.process
def test_jobs_that_outlast_their_lease_keep_it_whatever_they_do(place: Place) -> None:
    """An async handler that waits, one that blocks the loop, and a thread that never pauses; with idle workers by."""
    ids = place.enqueue(hold, 2, attempts=1)
    blocking = [place.enqueue_one(task, seconds=6.0, attempts=1) for task in (block_loop, spin)]
    # Long enough for a machine that is busy with other things, short enough for the handlers to outlast it.
    place.start(lease=3.6, heartbeat=0.3, processes=2)
    place.start(lease=3.6, heartbeat=0.3)
    place.wait_started(*ids, *blocking)
    seen = beats(place)

    # Six seconds. The default beats six times in a lease; two are enough to keep it.
    wait_until(
        lambda: all(beats(place).get(worker, 0) >= beat + 20 for worker, beat in seen.items()),
        what="20 beats of each",
    )
    place.release()

    records = place.wait_final(ids + blocking)
    assert {(record.state, record.counters.lost, record.counters.failed) for record in records} == {
        (State.completed, 0, 0)
    }
    assert len(place.ledger("started")) == 4


# What these show on a file, they show on a server as well.
STORIES: dict[str, Callable[[Place], None]] = {
    "a poison pill": test_kills.test_a_poison_pill_is_dead_after_three_processes_and_its_neighbours_all_finish,
    "kill -9 of the worker": test_kills.test_kill_9_of_the_whole_worker_means_again_and_not_failed,
    "a segfault": test_kills.test_a_segfault_in_a_handler_ends_neither_the_worker_nor_other_jobs,
    "deploys": test_shutdown.test_deploys_never_eat_the_retry_budget,
    "at once after an interrupt": test_shutdown.test_jobs_run_at_once_after_an_interrupted_worker,
    "stuck threads": test_time_to_run.test_stuck_threads_are_replaced_and_their_late_words_refused,
    "strange exceptions": lambda place: (
        test_endings.test_strange_exceptions_are_failed_attempts_and_the_worker_lives(place, raising_isolated)
    ),
}


@pytest.mark.process
@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_what_a_worker_does_on_a_file_it_does_on_a_server(
    server_place: Place, story: Callable[[Place], None]
) -> None:
    story(server_place)
