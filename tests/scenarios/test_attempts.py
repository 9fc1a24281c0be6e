"""Handlers inside a real worker: told in time that their job is no longer theirs, cancelled for the right reason."""

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from duly import App, Backoff, Job, LeaseLost
from duly.core.errors import DulyError
from duly.core.filters import Filter
from duly.core.job import Incarnation, JobId
from duly.core.lifecycle import Event, State
from duly.stores.faults import Transient
from duly.stores.open import open_store
from duly.testing.conformance.bench import POISON
from duly.worker.embedded import Embedded
from duly.worker.options import WorkerOptions
from tests.scenarios.inside import record_of, run_until_final
from tests.waiting import wait_until

# Due at once: `until_idle` does not wait for what is due later.
SOON = Backoff("0s", jitter=False)
QUICK = WorkerOptions(
    lease=timedelta(seconds=1.2),
    heartbeat=timedelta(seconds=0.2),
    poll=timedelta(seconds=0.05),
    patience=timedelta(seconds=0.5),
    grace=timedelta(seconds=2),
)


def reap_from_outside(app: App, incarnation: Incarnation) -> None:
    """Another worker has watched this one for a lease and takes its jobs."""
    other = open_store(app.store.url)

    def reaped() -> bool:
        seen = [beat for beat in other.leases.beats() if beat.incarnation == incarnation]
        return other.leases.reap(seen, POISON) == 1

    try:
        # A heartbeat between the look and the reap saves the worker, as it should.
        wait_until(reaped, what="a reap between two heartbeats")
    finally:
        other.close()


def stop_renewals(app: App, incarnation: Incarnation, patch: pytest.MonkeyPatch) -> None:
    """The heartbeats of this incarnation reach the store no more."""
    beat = app.store.leases.beat

    def away(incarnations: Any) -> frozenset[Incarnation]:
        if incarnation in incarnations:
            raise Transient("the network is down")
        return beat(incarnations)

    patch.setattr(app.store.leases, "beat", away)


@pytest.mark.parametrize("how", ["reaped", "cut off"])
def test_a_handler_that_lost_its_job_is_told_before_the_next_run_starts(
    jobs: App, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    lines: list[float] = []
    pause = threading.Event()

    @jobs.task
    def child() -> None: ...

    @jobs.task(attempts=2)
    def watcher(job: Job) -> None:
        run = job.token.run if job.token else 0
        told.append(f"start {run}")
        if run > 1:
            return
        while not job.should_stop:
            lines.append(time.monotonic())
            pause.wait(0.02)
        told.append("told")
        if how == "reaped":
            told.extend(refusals(job, child))

    id = watcher.enqueue().id
    with Embedded(jobs, QUICK) as worker:
        wait_until(lambda: len(lines) > 3, what="the handler at work")
        incarnation = worker.engine.incarnation
        lost_at = time.monotonic()
        if how == "reaped":
            reap_from_outside(jobs, incarnation)
        else:
            stop_renewals(jobs, incarnation, monkeypatch)
        wait_until(lambda: record_of(jobs, id).state is State.completed, what="the end", timeout=45)
        written = len(lines)
        wait_until(lambda: incarnation_of(worker) not in {None, incarnation}, what="a new incarnation")

    lease, heartbeat = 1.2, 0.2
    assert lines[-1] - lost_at < (2 * heartbeat if how == "reaped" else lease)
    assert len(lines) == written
    if how == "reaped":
        assert told.index("told") < told.index("start 2")
        assert told[told.index("told") + 1 :][:3] == ["enqueue", "extend", "complete"]
        assert jobs.store.inspection.counts() == []
    else:
        # It stopped of its own accord before anyone could take the job: its end still counts.
        assert (told, record_of(jobs, id).run) == (["start 1", "told"], 1)


def test_a_worker_that_lost_its_lease_in_an_outage_works_on_after_it(
    jobs: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = threading.Event()
    tried: list[str] = []

    @jobs.task
    def work() -> None: ...

    def unless_down(name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def acting(*args: Any, **kwargs: Any) -> Any:
            if down.is_set():
                tried.append(name)
                raise Transient("the network is down")
            return act(*args, **kwargs)

        return acting

    store = jobs.store
    for part, names in ((store.leases, ["beat", "register", "retire"]), (store.jobs, ["exchange", "report"])):
        for name in names:
            monkeypatch.setattr(part, name, unless_down(name, getattr(part, name)))

    with Embedded(jobs, QUICK) as worker:
        worker.until_idle(10)
        before = worker.engine.incarnation
        down.set()
        wait_until(lambda: "register" in tried, what="its try to begin anew", timeout=45)
        down.clear()
        id = work.enqueue().id
        wait_until(
            lambda: record_of(jobs, id).state is State.completed, what="work after the outage", timeout=20
        )
        assert worker.engine.incarnation != before


def incarnation_of(worker: Embedded) -> Incarnation | None:
    """None between two of them."""
    with suppress(DulyError):
        return worker.engine.incarnation
    return None


def refusals(job: Job, child: Any) -> list[str]:
    """Which words of a former holder are refused as such."""
    words: dict[str, Callable[[], object]] = {
        "enqueue": child.enqueue,
        "extend": lambda: job.extend("1m"),
        "complete": lambda: job.complete("mine"),
    }
    refused = []
    for name, word in words.items():
        try:
            word()
        except LeaseLost:
            refused.append(name)
    return refused


def test_handlers_that_only_a_timer_remembers_are_not_collected(jobs: App) -> None:
    @jobs.task
    async def waits() -> None:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        # Weak, as the loop's own references to tasks are: the slot alone keeps the handler alive.
        reference = weakref.ref(future)

        def resolve() -> None:
            kept = reference()
            if kept is not None:
                kept.set_result(None)

        loop.call_later(0.05, resolve)
        del loop
        await future

    over = threading.Event()

    def collect() -> None:
        while not over.wait(0.02):
            gc.collect()

    collector = threading.Thread(target=collect)
    ids = [one.id for one in jobs.enqueue_many(waits.draft() for _ in range(400))]
    collector.start()
    try:
        records = run_until_final(jobs, *ids, options=WorkerOptions(concurrency=200), timeout=40)
    finally:
        over.set()
        collector.join()

    assert {record.state for record in records} == {State.completed}


def fails_once(act: Callable[..., Any], failures: list[str]) -> Callable[..., Any]:
    """The act, which has a defect the first time."""

    def acting(*args: Any, **kwargs: Any) -> Any:
        if not failures:
            failures.append("failed")
            raise RuntimeError("a defect of ours")
        return act(*args, **kwargs)

    return acting


@pytest.mark.parametrize(
    ("part", "name"), [("leases", "beat"), ("leases", "beats"), ("upkeep", "sweep"), ("upkeep", "promote")]
)
def test_a_part_of_the_worker_that_fails_is_tried_again(
    jobs: App, part: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @jobs.task
    def work() -> None: ...

    failures: list[str] = []
    parts = getattr(jobs.store, part)
    calls: list[int] = []
    failing = fails_once(getattr(parts, name), failures)

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return failing(*args, **kwargs)

    monkeypatch.setattr(parts, name, counted)

    with Embedded(jobs, QUICK) as worker:
        wait_until(lambda: len(calls) >= 2, what=f"a second {name}", timeout=45)
        worker.until_idle(15)
        id = work.enqueue().id
        wait_until(lambda: record_of(jobs, id).state is State.completed, timeout=30)

    assert failures == ["failed"]


def test_a_worker_whose_heart_of_work_dies_says_so_within_seconds(
    jobs: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs.store.jobs, "exchange", fails_once(jobs.store.jobs.exchange, []))

    with pytest.raises(DulyError, match="pump died"), Embedded(jobs, QUICK) as worker:
        worker.until_idle(10)


def test_timeout_own_cancellation_and_a_users_cancel_are_told_apart(jobs: App) -> None:
    started = threading.Event()

    @jobs.task(timeout="200ms", attempts=2, backoff=SOON)
    async def too_long() -> None:
        await asyncio.Event().wait()

    @jobs.task(attempts=1)
    async def cancels_itself() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    @jobs.task(attempts=1)
    async def awaits_a_cancelled_child() -> None:
        child = asyncio.create_task(asyncio.Event().wait())
        child.cancel()
        await child

    @jobs.task(attempts=5)
    async def cancelled_by_a_user() -> None:
        started.set()
        await asyncio.Event().wait()

    @jobs.task
    async def normal() -> str:
        return "fine"

    options = WorkerOptions(concurrency=1, heartbeat=timedelta(seconds=0.2), poll=timedelta(seconds=0.05))
    order = [too_long, cancels_itself, awaits_a_cancelled_child]
    ids = [task.enqueue().id for task in order]
    with Embedded(jobs, options) as worker:
        worker.until_idle(20)
        user = cancelled_by_a_user.enqueue().id
        assert started.wait(10)
        jobs.operate.cancel(user, reason="wrong customer")
        last = normal.enqueue()
        assert last.result(timeout="10s") == "fine"

    timeout, own, child = (record_of(jobs, id) for id in ids)
    assert (timeout.state, timeout.counters.failed) == (State.dead, 2)
    assert (timeout.reason or "").startswith("gave up after 2: timeout")
    for record in (own, child):
        assert (record.state, record.counters.failed) == (State.dead, 1)
        assert record.error is not None
        assert "CancelledError" in record.error.type
        assert "timeout" not in (record.reason or "")
    cancelled = record_of(jobs, user)
    assert (cancelled.state, cancelled.counters.failed, cancelled.run) == (State.cancelled, 0, 1)
    assert cancelled.reason == "wrong customer"


class Stranger(BaseException):
    """Of no known family."""


RAISED: dict[str, Callable[[], BaseException]] = {
    "SystemExit(0)": lambda: SystemExit(0),
    "SystemExit(1)": lambda: SystemExit(1),
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
    "CancelledError": asyncio.CancelledError,
    "Stranger": lambda: Stranger("hello"),
}


def raised(kind: str) -> BaseException:
    return RAISED[kind]()


def test_whatever_a_handler_raises_is_one_failed_attempt_of_its_type(jobs: App) -> None:
    @jobs.task(attempts=1)
    def in_a_thread(kind: str) -> None:
        raise raised(kind)

    @jobs.task(attempts=1)
    async def on_the_loop(kind: str) -> None:
        raise raised(kind)

    @jobs.task
    def normal() -> None: ...

    @jobs.task
    async def anormal() -> None: ...

    expected = {task.enqueue(kind).id: kind for task in (in_a_thread, on_the_loop) for kind in RAISED}
    after = [task.enqueue().id for _ in range(5) for task in (normal, anormal)]
    with Embedded(jobs, WorkerOptions(concurrency=2, threads=2, poll=timedelta(seconds=0.05))) as worker:
        worker.until_idle(20)
        serving = [thread for thread in threading.enumerate() if thread.name.startswith("duly-thread-")]

    for id, kind in expected.items():
        record = record_of(jobs, id)
        assert (record.state, record.counters.failed) == (State.dead, 1), kind
        assert record.error is not None
        assert record.error.type.rpartition(".")[2] == kind.partition("(")[0]
        begun = [attempt for attempt in jobs.store.inspection.attempts(id) if attempt.started_at is not None]
        assert [attempt.event for attempt in begun] == [Event.fail]
    assert {record_of(jobs, id).state for id in after} == {State.completed}
    assert len(serving) <= 2


def test_a_death_is_told_once_with_its_own_error(jobs: App, capfd: pytest.CaptureFixture[str]) -> None:
    @jobs.task(attempts=1)
    def fails() -> None:
        raise ValueError("x")

    id: JobId = fails.enqueue().id

    (record,) = run_until_final(jobs, id)

    assert (record.state, record.reason) == (State.dead, "gave up after 1: x")
    assert record.error is not None
    assert (record.error.type, record.error.message) == ("ValueError", "x")
    assert capfd.readouterr().err.count(f"job {id} (fails on default) is dead") == 1
    assert [(group.count, group.error) for group in jobs.store.inspection.dead_groups(Filter())] == [
        (1, "ValueError: x")
    ]
