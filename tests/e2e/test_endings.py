"""How handlers end, in every kind of slot, and that the worker goes on: strange exceptions, forks, closed files."""

import pytest

from duly.core.lifecycle import Event, State
from tests.e2e.chores_app import (
    awaits_a_cancelled_child,
    cancels_itself,
    cancels_itself_and_returns,
    hold,
    hold_isolated,
    hold_thread,
    quick,
    raising,
    raising_isolated,
    raising_thread,
    unstorable,
)
from tests.e2e.workers import AnyTask, Place
from tests.waiting import wait_until

pytestmark = pytest.mark.process

KINDS = pytest.mark.parametrize(
    "task", [raising, raising_thread, raising_isolated], ids=["loop", "thread", "process"]
)
STRANGE = {
    "SystemExit(0)": "SystemExit",
    "SystemExit(1)": "SystemExit",
    "KeyboardInterrupt": "KeyboardInterrupt",
    "GeneratorExit": "GeneratorExit",
    "CancelledError": "asyncio.exceptions.CancelledError",
    "Stranger": "tests.e2e.chores_app.Stranger",
    "RecursionError": "RecursionError",
    "MemoryError": "MemoryError",
    "Unpicklable": "tests.e2e.chores_app.Unpicklable",
}


@KINDS
def test_strange_exceptions_are_failed_attempts_and_the_worker_lives(place: Place, task: AnyTask) -> None:
    """RT-08 and RT-09."""
    ids = {kind: place.enqueue_one(task, kind=kind, attempts=1) for kind in STRANGE}
    worker = place.start()

    records = {kind: place.wait_final([id])[0] for kind, id in ids.items()}
    after = place.wait_final(place.enqueue(quick, 10))

    assert {record.state for record in records.values()} == {State.dead}
    assert {kind: record.error.type for kind, record in records.items() if record.error} == STRANGE
    assert {record.counters.failed for record in records.values()} == {1}
    assert {record.state for record in after} == {State.completed}
    assert "died" not in worker.log
    assert worker.stop() == 0


@KINDS
@pytest.mark.parametrize("kind", ["fork", "close stdout"])
def test_handlers_that_fork_or_close_stdout_complete_once(place: Place, task: AnyTask, kind: str) -> None:
    id = place.enqueue_one(task, kind=kind)
    worker = place.start()

    (record,) = place.wait_final([id])
    (after,) = place.wait_final([place.enqueue_one(task, kind="nothing")])

    assert (record.state, record.run) == (State.completed, 1)
    assert after.state is State.completed
    assert worker.stop() == 0


@KINDS
def test_an_ending_may_come_out_of_a_group(place: Place, task: AnyTask) -> None:
    id = place.enqueue_one(task, kind="Skip in a group")
    place.start()

    (record,) = place.wait_final([id])

    assert (record.state, record.reason) == (State.skipped, "not needed")


@KINDS
def test_snoozes_cost_no_attempt_and_retries_cost_one(place: Place, task: AnyTask) -> None:
    snoozing = place.enqueue_one(task, kind="Snooze", attempts=1)
    retrying = place.enqueue_one(task, kind="Retry", attempts=2)
    place.start()

    (retried,) = place.wait_final([retrying])

    assert retried.reason == "gave up after 2: once more"
    wait_until(lambda: place.job(snoozing).counters.snoozed, what="a snooze of the other job")
    assert place.job(snoozing).counters.failed == 0


def test_a_result_that_cannot_be_stored_completes_the_job_with_a_note(place: Place) -> None:
    id = place.enqueue_one(unstorable)
    place.start()

    (record,) = place.wait_final([id])

    assert (record.state, record.result) == (State.completed, None)
    assert (record.note or "").startswith("result not storable")


def test_a_cancellation_of_the_handlers_own_making_is_an_ordinary_failure(place: Place) -> None:
    """RT-06 (b) and (c)."""
    ids = [place.enqueue_one(task) for task in (cancels_itself, awaits_a_cancelled_child)]
    returning = place.enqueue_one(cancels_itself_and_returns)
    after = place.enqueue(quick, 10)
    place.start(concurrency=1)

    records = place.wait_final(ids)

    assert {record.state for record in records} == {State.dead}
    assert {record.error.type for record in records if record.error} == {"asyncio.exceptions.CancelledError"}
    assert place.wait_final([returning])[0].state is State.completed
    assert {record.state for record in place.wait_final(after)} == {State.completed}


@pytest.mark.parametrize("task", [hold, hold_thread, hold_isolated], ids=["loop", "thread", "process"])
def test_a_running_job_is_cancelled_on_request_and_not_retried(place: Place, task: AnyTask) -> None:
    """RT-06 (d)."""
    id = place.enqueue_one(task)
    place.start()
    place.wait_started(id)

    place.store.operator.cancel([id], "ada", "changed her mind")

    (record,) = place.wait_final([id])
    # A thread is asked, and this one returns: what it did stands.
    assert record.state is (State.completed if task is hold_thread else State.cancelled)
    assert record.run == 1
    assert not any(attempt.event is Event.fail for attempt in place.store.inspection.attempts(id))


def test_arguments_that_do_not_fit_are_dead_at_once_and_kept(place: Place) -> None:
    id = place.enqueue_one(quick, n="seven")
    place.start()

    (record,) = place.wait_final([id])

    assert record.state is State.dead
    assert (record.reason or "").startswith("arguments cannot be read")
    assert record.args == b'{"n": "seven"}'
