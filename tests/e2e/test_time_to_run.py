"""Time to run, enforced for every kind of handler; and what the record says about it."""

import pytest

from duly.core.lifecycle import Event, State
from tests.e2e.chores_app import (
    block_loop,
    deaf,
    deaf_isolated,
    deaf_thread,
    hold,
    hold_isolated,
    hold_the_gil,
    quick,
)
from tests.e2e.workers import AnyTask, Place
from tests.waiting import wait_until

pytestmark = pytest.mark.process


@pytest.mark.parametrize("task", [hold, hold_isolated], ids=["loop", "process"])
def test_a_timeout_is_a_failed_attempt_and_dead_at_the_last(place: Place, task: AnyTask) -> None:
    """RT-01."""
    id = place.enqueue_one(task, timeout=0.3, attempts=2)
    place.start()

    (record,) = place.wait_final([id])

    assert record.state is State.dead
    assert record.reason == "gave up after 2: timeout: ran longer than 300ms"
    assert len(place.ledger("started", id)) == 2
    assert [attempt.event for attempt in place.store.inspection.attempts(id)] == [Event.fail, Event.fail]


def test_an_isolated_handler_that_does_not_stop_is_killed(place: Place) -> None:
    neighbour = place.enqueue_one(hold)
    id = place.enqueue_one(deaf_isolated, timeout=0.3, attempts=1)
    place.start()
    place.wait_started(neighbour)

    (record,) = place.wait_final([id])
    place.release()

    assert record.state is State.dead
    assert "timeout" in (record.reason or "")
    assert place.wait_final([neighbour])[0].run == 1


def test_an_async_handler_that_swallows_its_cancellation_is_given_up_with_its_process(place: Place) -> None:
    id = place.enqueue_one(deaf, timeout=0.3, attempts=1)
    worker = place.start()
    (line,) = place.wait_started(id)

    (record,) = place.wait_final([id])
    after = place.enqueue_one(quick)
    (other,) = place.wait_final([after])

    assert (record.state, record.reason) == (State.dead, "gave up after 1: timeout: ran longer than 300ms")
    assert place.ledger("cancelled", id)
    assert other.state is State.completed
    assert place.ledger("ran", after)[0].pid != line.pid
    assert worker.stop() == 0


def test_stuck_threads_are_replaced_and_their_late_words_refused(place: Place) -> None:
    """RT-07."""
    stuck = place.enqueue(deaf_thread, 4, timeout=0.3, attempts=1)
    place.start(threads=2)
    first = place.wait_started(*stuck[:2])
    normal = place.enqueue(quick, 10)

    place.wait_final(normal, timeout=45)
    records = place.wait_final(stuck, timeout=90)

    assert {record.state for record in records} == {State.dead}
    assert {record.counters.failed for record in records} == {1}
    assert all("timeout" in (record.reason or "") for record in records)
    assert len(place.ledger("started")) == 4
    assert len({line.pid for line in first}) == 1


def test_no_job_of_a_stuck_thread_starts_again_before_its_process_is_gone(place: Place) -> None:
    id = place.enqueue_one(deaf_thread, timeout=0.3, attempts=2)
    place.start()

    (record,) = place.wait_final([id], timeout=90)

    first, second = place.ledger("started", id)
    assert record.counters.failed == 2
    assert first.pid != second.pid
    assert not any(worker.pid == first.pid for worker in place.workers())


def test_a_loop_that_does_not_turn_is_named_and_its_neighbours_are_back_unspent(place: Place) -> None:
    neighbour = place.enqueue_one(hold, attempts=1)
    worker = place.start()
    place.wait_started(neighbour)
    id = place.enqueue_one(block_loop, seconds=60.0, timeout=0.5, attempts=1)

    (record,) = place.wait_final([id])
    place.wait_started(neighbour, attempt=2)
    place.release()

    (other,) = place.wait_final([neighbour])
    assert record.state is State.dead
    assert "timeout" in (record.reason or "")
    assert record.error is not None
    assert "block_loop" in record.error.traceback
    assert (other.state, other.counters.failed, other.counters.lost) == (State.completed, 0, 1)
    assert f"job {id} (block_loop) has not let the event loop turn" in worker.log


def test_c_code_that_holds_the_gil_for_longer_than_its_time_to_run_is_killed(place: Place) -> None:
    id = place.enqueue_one(hold_the_gil, seconds=60, timeout=0.5)
    worker = place.start()
    place.wait_started(id)

    wait_until(lambda: "did not turn" in worker.log, timeout=60, what="the guard")
    place.wait_started(id, attempt=2)

    # A busy machine may come here when the next attempt is over, too.
    assert place.job(id).counters.lost >= 1


def test_a_time_to_run_longer_than_the_lease_costs_no_lease(place: Place) -> None:
    """LS-04 and RT-04: age alone never leads to a rescue."""
    id = place.enqueue_one(hold)
    worker = place.start(lease=0.9, heartbeat=0.3)
    place.start(lease=0.9, heartbeat=0.3)
    place.wait_started(id)

    wait_until(
        lambda: any(beat.beat > 15 for beat in place.store.leases.beats()), what="five leases of heartbeats"
    )
    place.release()

    (record,) = place.wait_final([id])
    assert (record.state, record.run) == (State.completed, 1)
    assert worker.stop() == 0
