"""What counts as an attempt and what does not, and that a second life of a job is as good as its first."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly import Backoff
from duly.core.classify import Verdict
from duly.core.decide import Policy, failed, raised
from duly.core.endings import Retry, Snooze
from duly.core.fingerprint import describe
from duly.core.job import ClaimedJob, Counters, Ended, Incarnation, JobId
from duly.core.lifecycle import Event, State
from duly.testing.conformance import Bench
from duly.testing.conformance.bench import BOOM, HOUR, MINUTE, SECOND, ended, together

TRANSIENT = Verdict("transient")
POLICY = Policy(attempts=2, backoff=Backoff("1s", jitter=False), max_interrupts=10)


@pytest.mark.parametrize("failures", [1, 46, 47, 63, 64, 1023, 1024, 5000, 10**6])
@pytest.mark.parametrize("factor", [1, 2, 2.5, 100, 1000])
@pytest.mark.parametrize("random", [0.0, 0.5, 1.0])
def test_no_number_of_failures_makes_the_wait_leave_its_bounds(
    failures: int, factor: float, random: float
) -> None:
    for jitter in (True, False):
        delay = Backoff("1s", factor=factor, cap="1h", jitter=jitter).delay(failures, random)

        assert timedelta(0) <= delay <= HOUR


@given(
    failures=st.integers(1, 10**9),
    base=st.integers(0, 10**9),
    factor=st.floats(1, 1000),
    random=st.floats(0, 1),
    jitter=st.booleans(),
)
def test_any_backoff_stays_between_nothing_and_its_cap(
    failures: int, base: int, factor: float, random: float, jitter: bool
) -> None:
    plan = Backoff(timedelta(microseconds=base), factor=factor, cap="1h", jitter=jitter)

    assert timedelta(0) <= plan.delay(failures, random) <= HOUR


def test_the_due_time_after_thousands_of_failures_is_a_valid_moment(bench: Bench) -> None:
    policy = Policy(attempts=10_000, backoff=Backoff("1s", factor=100, cap="1h"), max_interrupts=10)
    worker = bench.worker()
    id = bench.put(attempts=10_000)
    before = Counters(failed=4_999)
    claimed = bench.claim_one(worker)
    bench.end(worker, ended(claimed, Event.interrupt, counters=before))
    claimed = bench.claim_one(worker)

    bench.end(worker, failed(claimed, TRANSIENT, policy, 1.0, BOOM, SECOND))

    row = bench.row(id)
    assert row.run_at is not None
    assert row.counters.failed == 5_000
    assert bench.clock() <= row.run_at <= bench.clock() + HOUR


class NeedsTwo(Exception):
    """Can be pickled and not be loaded."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(a)
        self.b = b


class Unreadable(Exception):
    def __str__(self) -> NoReturn:
        raise RuntimeError("no text for you")

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle")


def caught(error: BaseException, cause: BaseException | None = None) -> BaseException:
    try:
        raise error from cause
    except BaseException as raised_error:
        return raised_error


UNPICKLABLE = {
    "constructor": caught(NeedsTwo(1, 2)),
    "lambda": caught(ValueError("holds", lambda: None)),
    "cause": caught(RuntimeError("outer"), NeedsTwo(1, 2)),
    "text": caught(Unreadable()),
}


@pytest.mark.parametrize("error", UNPICKLABLE.values(), ids=UNPICKLABLE)
def test_an_error_that_cannot_be_pickled_is_stored_as_type_text_and_trace(
    bench: Bench, error: BaseException
) -> None:
    worker = bench.worker()
    first, second = bench.put_many(2)
    one, two = bench.claim(worker, 2)
    asked = Retry(reason="again")
    asked.__cause__ = error

    bench.end(
        worker,
        failed(one, TRANSIENT, POLICY, 0.5, describe(error), SECOND),
        raised(two, asked, POLICY, 0.5, describe(error), SECOND),
    )

    for id in (first, second):
        (attempt,) = bench.history(id)
        assert attempt.error is not None
        assert attempt.error.type.endswith(type(error).__qualname__)
        assert attempt.error.message
        assert "test_retry" in attempt.error.traceback


def promote(bench: Bench, wait: timedelta = HOUR) -> None:
    bench.clock.advance(wait)
    bench.store.upkeep.promote()


def work_once(bench: Bench, worker: Incarnation, fail: bool) -> None:
    """Claim the next job and either fail or put it off, as the worker would decide."""
    job = bench.claim_one(worker)
    end: Ended = (
        failed(job, TRANSIENT, POLICY, 0.5, BOOM, SECOND)
        if fail
        else raised(job, Snooze("10s"), POLICY, 0.5, BOOM, SECOND)
    )
    assert bench.end(worker, end) == {(job.id, job.run)}


def test_putting_off_twenty_times_costs_no_attempt(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(attempts=2)

    for _ in range(20):
        work_once(bench, worker, fail=False)
        assert bench.row(id).run_at == bench.clock() + 10 * SECOND
        promote(bench, 10 * SECOND)
    last = bench.claim_one(worker)
    bench.end(worker, ended(last, Event.complete))

    row = bench.row(id)
    assert last.attempt == 1
    assert (row.state, row.counters) == (State.completed, Counters(failed=0, snoozed=20))
    assert [attempt.event for attempt in bench.history(id)] == [Event.snooze] * 20 + [Event.complete]


def test_putting_off_between_two_failures_neither_adds_nor_hides_one(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(attempts=2)

    for fail in (True, False, False, False, False, False):
        work_once(bench, worker, fail)
        assert bench.state(id) is State.scheduled
        promote(bench)
    work_once(bench, worker, fail=True)

    row = bench.row(id)
    assert (row.state, row.counters) == (State.dead, Counters(failed=2, snoozed=5))
    assert row.reason == "gave up after 2: boom"


def die(bench: Bench, worker: Incarnation, id: JobId) -> None:
    """Fail as often as the job may."""
    for _ in range(POLICY.attempts):
        promote(bench)
        work_once(bench, worker, fail=True)
    assert bench.state(id) is State.dead


def test_a_second_life_keeps_every_setting_and_both_are_in_the_history(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(
        args=b'{"n":1}',
        priority=7,
        tenant="a",
        tags=("x", "y"),
        correlation_id="c1",
        attempts=2,
        timeout=MINUTE,
        ordering_key="k",
    )
    born = bench.row(id)

    die(bench, worker, id)
    assert bench.store.operator.redrive([id], "ann", "fixed") == [id]
    assert bench.row(id).counters == Counters()
    die(bench, worker, id)
    bench.store.operator.redrive([id], "bob", "really fixed")
    last = bench.claim_one(worker)
    bench.end(worker, ended(last, Event.complete))

    row = bench.row(id)
    kept = (
        "args",
        "priority",
        "tenant",
        "tags",
        "correlation_id",
        "attempts",
        "timeout",
        "ordering_key",
        "enqueued_at",
        "queue",
    )
    assert {name: getattr(row, name) for name in kept} == {name: getattr(born, name) for name in kept}
    assert (row.state, row.run, last.attempt) == (State.completed, 5, 1)
    assert [(attempt.run, attempt.event) for attempt in bench.history(id)] == [
        *((run, Event.fail) for run in (1, 2, 3, 4)),
        (5, Event.complete),
    ]


def test_dead_letters_that_two_people_redrive_at_once_run_once_each(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_many(50)
    bench.end(worker, *(ended(job, Event.bury, error=BOOM) for job in bench.claim(worker, 50)))
    stores = [bench.another() for _ in range(3)]

    def redrive(number: int, chosen: Sequence[JobId], by: str) -> list[JobId]:
        return stores[number].operator.redrive(chosen, by, "fixed")

    moved = together(
        partial(redrive, 0, ids, "ann"),
        partial(redrive, 1, list(reversed(ids)), "bob"),
        partial(redrive, 2, ids[6:7], "eve"),
    )
    runs: list[ClaimedJob] = []
    while claimed := bench.claim(worker, 7):
        runs += claimed
        bench.end(worker, *(ended(job, Event.complete) for job in claimed))

    assert sorted(id for answer in moved for id in answer) == ids
    assert [(job.id, job.run) for job in sorted(runs, key=lambda job: job.id)] == [(id, 2) for id in ids]
    assert bench.store.operator.redrive(ids, "ann", "once more") == []
    assert bench.states(ids) == [State.completed] * 50
