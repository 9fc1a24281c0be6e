"""What SIGKILL does to a worker process, its supervisor and an isolated process; and jobs that kill by themselves."""

import os
import signal

import pytest

from duly.core.lifecycle import Event, State
from tests.e2e.chores_app import (
    boom,
    boom_isolated,
    hold,
    hold_isolated,
    once,
    quick,
    sabotage,
    segfault,
)
from tests.e2e.workers import Place, runs
from tests.waiting import wait_until

pytestmark = pytest.mark.process


def test_a_killed_process_is_replaced_and_its_jobs_are_back_at_once(any_place: Place) -> None:
    place = any_place
    id = place.enqueue_one(hold)
    worker = place.start(lease=30.0, heartbeat=5.0)
    (line,) = place.wait_started(id)

    os.kill(line.pid, signal.SIGKILL)
    (again,) = place.wait_started(id, attempt=2, timeout=45)
    place.release()

    (record,) = place.wait_final([id])
    assert (record.state, record.counters.lost) == (State.completed, 1)
    assert line.pid != again.pid
    assert place.store.inspection.attempts(id)[0].event is Event.lose
    assert worker.stop() == 0


def test_jobs_claimed_by_a_killed_process_and_never_started_are_only_interrupted(place: Place) -> None:
    started = place.enqueue_one(hold)
    waiting = place.enqueue(hold, 3)
    place.start(concurrency=1, unstarted=60.0, max_jobs=None)
    (line,) = place.wait_started(started)

    os.kill(line.pid, signal.SIGKILL)
    place.wait_started(started, attempt=2)
    place.release()

    records = place.wait_final([started, *waiting])
    assert [record.counters.lost for record in records] == [1, 0, 0, 0]


def test_kill_9_of_the_whole_worker_means_again_and_not_failed(place: Place) -> None:
    id = place.enqueue_one(hold, attempts=3)

    for attempt in (1, 2):
        worker = place.start()
        place.wait_started(id, attempt=attempt)
        worker.signal(signal.SIGKILL)
        worker.wait()
    place.start()
    place.wait_started(id, attempt=3)
    place.release()

    (record,) = place.wait_final([id])
    assert record.state is State.completed
    assert (record.counters.lost, record.counters.failed) == (2, 0)
    events = [attempt.event for attempt in place.store.inspection.attempts(id)]
    assert events.count(Event.lose) == 2


def test_no_process_outlives_its_supervisor(place: Place) -> None:
    ids = [place.enqueue_one(hold), place.enqueue_one(hold_isolated)]
    worker = place.start()
    pids = {line.pid for line in place.wait_started(*ids)}

    worker.signal(signal.SIGKILL)

    wait_until(lambda: not any(runs(pid) for pid in pids), what=f"the end of {pids}")


def test_a_poison_pill_is_dead_after_three_processes_and_its_neighbours_all_finish(place: Place) -> None:
    """RT-02."""
    innocents = place.enqueue(quick, 10)
    pill = place.enqueue_one(boom)
    innocents += place.enqueue(quick, 10)
    worker = place.start(processes=2)

    (record,) = place.wait_final([pill], timeout=90)
    others = place.wait_final(innocents, timeout=90)

    assert record.state is State.dead
    assert "its worker was lost 3 times" in (record.reason or "")
    assert len(place.ledger("started", pill)) == 3
    assert {other.state for other in others} == {State.completed}
    assert worker.stop() == 0


def test_until_idle_outlasts_poison_pills_and_ends_with_0(place: Place) -> None:
    pills = [place.enqueue_one(task) for task in (boom, boom_isolated)]
    others = place.enqueue(quick, 20)

    worker = place.start(until_idle=True)

    assert worker.wait(timeout=120) == 0
    assert {place.job(id).state for id in pills} == {State.dead}
    assert {place.job(id).state for id in others} == {State.completed}


def test_a_segfault_in_a_handler_ends_neither_the_worker_nor_other_jobs(place: Place) -> None:
    """SH-05."""
    innocents = place.enqueue(hold, 2)
    worker = place.start(processes=2)
    place.wait_started(*innocents)
    killer = place.enqueue_one(segfault)
    wait_until(lambda: "SIGSEGV" in worker.log, what="the first death")
    # The innocents of that process run alone from now on, one after the other, before the killer does.
    place.release()

    (record,) = place.wait_final([killer], timeout=90)

    assert record.state is State.dead
    assert {other.state for other in place.wait_final(innocents)} == {State.completed}
    place.wait_workers(2)
    assert worker.stop() == 0


def test_an_isolated_handler_that_dies_takes_nobody_along(place: Place) -> None:
    neighbours = [place.enqueue_one(hold), place.enqueue_one(hold_isolated)]
    place.start(isolated=2)
    place.wait_started(*neighbours)
    killer = place.enqueue_one(boom_isolated)

    (record,) = place.wait_final([killer], timeout=90)
    place.release()

    others = place.wait_final(neighbours)
    assert record.state is State.dead
    assert {(other.state, other.run) for other in others} == {(State.completed, 1)}
    assert len(place.ledger("started", killer)) == 3
    assert place.store.inspection.attempts(killer)[0].reason == "its process was killed by SIGKILL"


def test_a_job_acknowledged_at_the_start_is_never_run_twice(place: Place) -> None:
    id = place.enqueue_one(once)
    worker = place.start()

    wait_until(lambda: "died" in worker.log, what="the death of the process")
    after = place.enqueue_one(quick)

    place.wait_final([after])
    assert place.job(id).state is State.completed
    assert len(place.ledger("started", id)) == 1


@pytest.mark.parametrize("part", ["pump", "duties", "event loop slots"])
def test_a_process_whose_own_parts_die_is_replaced(place: Place, part: str) -> None:
    """LS-11."""
    broken = place.enqueue_one(sabotage, part=part, attempts=1)
    worker = place.start()
    wait_until(lambda: place.job(broken).run > 0, what="the sabotage")
    victim = place.enqueue_one(quick)

    worker.wait_said(f"its {part} died")
    ids = place.enqueue(quick, 10)

    assert {record.state for record in place.wait_final([victim, *ids])} == {State.completed}
    assert worker.stop() == 0
