"""Stopping a worker: the grace, its end, a second signal, and what a job sees of it."""

import os
import signal

import pytest

from duly.core.lifecycle import Event, State
from tests.e2e.chores_app import deaf, deaf_thread, hold, hold_isolated, hold_thread, quick
from tests.e2e.workers import Place
from tests.waiting import wait_until

pytestmark = pytest.mark.process


def test_a_job_that_ends_within_the_grace_is_completed_and_the_worker_exits_with_0(any_place: Place) -> None:
    """SH-01: claims nothing new, renews until the end, acknowledges, leaves."""
    place = any_place
    id = place.enqueue_one(hold)
    worker = place.start(grace=30.0)
    place.wait_started(id)

    worker.signal(signal.SIGTERM)
    # The supervisor says it first; the process that runs the job says how many run.
    worker.wait_said(", 1 running")
    late = place.enqueue_one(quick)
    beats = place.store.leases.beats()
    wait_until(lambda: place.store.leases.beats()[0].beat > beats[0].beat + 3, what="four more heartbeats")
    place.release()

    assert worker.wait() == 0
    assert (place.job(id).state, place.job(id).run) == (State.completed, 1)
    assert place.job(late).state is State.ready
    assert place.workers() == []


def test_what_does_not_end_within_the_grace_goes_back_without_spending_an_attempt(any_place: Place) -> None:
    place = any_place
    ids = [place.enqueue_one(task, attempts=1) for task in (hold, hold_isolated)]
    worker = place.start(grace=0.2)
    place.wait_started(*ids)

    assert worker.stop() == 0

    for id in ids:
        record = place.job(id)
        assert (record.state, record.counters.failed, record.counters.interrupted) == (State.ready, 0, 1)
        (attempt,) = place.store.inspection.attempts(id)
        assert (attempt.event, attempt.reason) == (Event.interrupt, "SIGTERM")
    assert place.workers() == []


def test_deploys_never_eat_the_retry_budget(place: Place) -> None:
    """RT-05."""
    id = place.enqueue_one(hold, attempts=1)
    for deploy in range(3):
        worker = place.start(grace=0.1)
        place.wait_lines("started", deploy + 1)
        assert worker.stop() == 0

    place.start()
    place.wait_lines("started", 4)
    place.release()

    (record,) = place.wait_final([id])
    assert (record.state, record.counters.failed) == (State.completed, 0)
    interrupted = [row for row in place.store.inspection.attempts(id) if row.event is Event.interrupt]
    assert len(interrupted) == 3


def test_a_second_signal_cuts_the_grace_and_loses_nothing(place: Place) -> None:
    """SH-03."""
    ids = place.enqueue(hold, 20)
    worker = place.start(grace=60.0)
    place.wait_started(*ids)

    worker.signal(signal.SIGTERM)
    wait_until(lambda: "stopping" in worker.log, what="the stop")
    worker.signal(signal.SIGTERM)

    assert worker.wait(timeout=30) == 0
    assert {place.job(id).state for id in ids} == {State.ready}
    assert {place.job(id).counters.interrupted for id in ids} == {1}


def test_a_third_signal_does_not_kill_the_release_either(place: Place) -> None:
    ids = place.enqueue(hold, 5)
    worker = place.start(grace=60.0)
    place.wait_started(*ids)

    for sent in range(3):
        worker.signal(signal.SIGINT)
        # Signals that come together count as one.
        worker.wait_said("stopping", sent + 1)

    assert worker.wait(timeout=30) == 0
    assert {place.job(id).state for id in ids} == {State.ready}


def test_jobs_run_at_once_after_an_interrupted_worker(place: Place) -> None:
    """SH-04: nothing waits for a lease."""
    first = place.enqueue_one(hold)
    worker = place.start(grace=0.1, lease=60.0, heartbeat=5.0)
    place.wait_started(first)
    assert worker.stop() == 0

    place.start(lease=60.0, heartbeat=5.0)
    second = place.enqueue_one(quick)
    place.wait_final([second], timeout=30)
    place.release()

    assert place.wait_final([first], timeout=30)[0].state is State.completed


def test_handlers_that_do_not_stop_end_with_their_process_and_go_back_unspent(place: Place) -> None:
    ids = [place.enqueue_one(task, attempts=1) for task in (deaf, deaf_thread)]
    worker = place.start(grace=0.2)
    place.wait_started(*ids)

    assert worker.stop() == 0

    for id in ids:
        record = place.job(id)
        assert (record.state, record.counters.failed, record.counters.lost) == (State.ready, 0, 0)
        assert [attempt.event for attempt in place.store.inspection.attempts(id)] == [Event.interrupt]


def test_a_thread_handler_sees_should_stop_within_the_grace(place: Place) -> None:
    id = place.enqueue_one(hold_thread)
    worker = place.start(grace=20.0)
    place.wait_started(id)

    assert worker.stop(timeout=30) == 0

    assert place.job(id).state is State.completed


def test_lifespans_are_left_at_a_clean_end(place: Place) -> None:
    id = place.enqueue_one(quick)
    worker = place.start()
    place.wait_final([id])

    assert worker.stop() == 0

    entered = {path.name.partition("-")[2] for path in place.folder.glob("entered-*")}
    left = {path.name.partition("-")[2] for path in place.folder.glob("left-*")}
    assert entered == left != set()


def test_a_job_enqueued_while_the_worker_stops_is_untouched_or_back_at_once(place: Place) -> None:
    """SH-02."""
    found = []
    for _ in range(5):
        worker = place.start()
        place.wait_workers()
        worker.signal(signal.SIGTERM)
        found.append(place.enqueue_one(quick))
        assert worker.wait() == 0

    states = {place.job(id).state for id in found}

    assert states <= {State.ready, State.completed}
    assert {place.job(id).counters.failed + place.job(id).counters.lost for id in found} == {0}


def test_a_process_that_is_told_to_stop_by_itself_stops_cleanly_and_is_replaced(place: Place) -> None:
    """As systemd does, which signals the whole control group."""
    id = place.enqueue_one(hold)
    worker = place.start(grace=20.0)
    (line,) = place.wait_started(id)

    os.kill(line.pid, signal.SIGTERM)
    worker.wait_said(", 1 running")
    place.release()

    assert place.wait_final([id])[0].run == 1
    wait_until(lambda: {row.pid for row in place.workers()} - {line.pid}, what="another process")
    assert "died" not in worker.log
    assert worker.stop() == 0


def test_until_idle_ends_by_itself_when_everything_is_done(any_place: Place) -> None:
    place = any_place
    ids = place.enqueue(quick, 200) + place.enqueue(hold_thread, 3)
    place.release()

    worker = place.start(until_idle=True, processes=2)

    assert worker.wait() == 0
    assert {record.state for record in place.wait_final(ids, timeout=1)} == {State.completed}
