"""How often jobs run, on every store: what is counted as a second run, and what it is a day."""

from __future__ import annotations

from datetime import timedelta

import pytest

from duly import App, UsageError
from duly.core.classify import Verdict
from duly.core.decide import Policy, failed, interrupted
from duly.core.fingerprint import describe
from duly.core.job import ClaimedJob, Ended
from duly.core.runs import TaskRuns
from duly.testing import FakeClock
from tests.client.conftest import Hands

SECOND = timedelta(seconds=1)


@pytest.fixture
def clock(both: App) -> FakeClock:
    both.close()
    both.client.clock = clock = FakeClock()
    return clock


def failure(app: App, job: ClaimedJob) -> Ended:
    policy = Policy(attempts=10, backoff=app.client.backoff, max_interrupts=10)
    return failed(job, Verdict("transient"), policy, 0.0, describe(ValueError("no route")), SECOND)


def interrupt(app: App, job: ClaimedJob) -> Ended:
    policy = Policy(attempts=10, backoff=app.client.backoff, max_interrupts=10)
    return interrupted(job, policy, "SIGTERM", SECOND)


def fold(app: App, clock: FakeClock) -> None:
    """Until all is counted up to now, as the duty does in time."""
    clock.advance("2m")
    while app.store.tallies.fold():
        pass


def test_runs_of_a_task_are_told_by_cause(both: App, clock: FakeClock) -> None:
    @both.task
    def send() -> None: ...

    hands = Hands(both.store, "send")
    fold(both, clock)
    for _ in range(5):
        send.enqueue()
    first, second, *others = hands.claim()
    hands.end(failure(both, first), interrupt(both, second))
    for job in others:
        hands.complete(job)
    clock.advance("20s")
    both.store.upkeep.promote()
    for job in hands.claim():
        hands.complete(job)
    fold(both, clock)

    found = both.inspect.runs("1h")

    assert found.tasks == (TaskRuns("send", completed=5, failed=1, redelivered=1),)
    assert found.all.per_completed == pytest.approx(7 / 5)
    assert found.share(found.all.second, found.all) == "20 % = 24 a day"
    assert both.inspect.runs("1h", queue="elsewhere").tasks == ()


def test_a_job_that_a_person_ran_again_is_a_second_run(both: App, clock: FakeClock) -> None:
    @both.task
    def send() -> None: ...

    hands = Hands(both.store, "send")
    fold(both, clock)
    enqueued = send.using(delay="1h").enqueue()
    both.operate.cancel(enqueued.id)
    both.operate.redrive(enqueued.id, reason="it was wanted after all")
    (job,) = hands.claim()
    hands.complete(job)
    fold(both, clock)

    (task,) = both.inspect.runs("24h").tasks

    assert (task.completed, task.redriven, task.second) == (1, 1, 1)


def test_before_anything_is_counted_nothing_is_said(both: App, clock: FakeClock) -> None:
    found = both.inspect.runs()

    assert (found.since, found.until, found.tasks) == (None, None, ())
    assert found.share(0, found.all) == "none"
    with pytest.raises(UsageError, match="14 days"):
        both.inspect.runs("15d")
