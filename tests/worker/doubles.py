"""What tests of single parts need around them: a clock that stands still, claimed jobs, attempts of a declared task."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from duly import App
from duly.client.job import CallOutcome
from duly.core.job import ClaimedJob, Counters, Ended, Incarnation, JobId, Progress
from duly.stores.protocol import Store
from duly.worker.attempt import Attempt, Why
from duly.worker.card import Card, cards_of
from duly.worker.messages import StepKept
from duly.worker.options import Plan
from duly.worker.steps import FirmFuture

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> float:
        self.now += seconds
        return self.now


class Desk:
    """A desk that keeps what is noted on it."""

    def __init__(self) -> None:
        self.incarnation = Incarnation(7)
        self.stopping = False
        self.progress: list[Progress] = []
        self.extensions: list[timedelta] = []
        self.cursors: list[tuple[str, int]] = []
        self.steps: dict[str, bytes] = {}
        self.kept = StepKept(live=True)
        self.forgotten = 0
        self.calls: list[tuple[str, CallOutcome]] = []

    @property
    def store(self) -> Store:
        raise AssertionError("this attempt must not reach for the store")

    def stop_at(self) -> float:
        return float("inf")

    def note_progress(self, attempt: Attempt, progress: Progress) -> None:
        self.progress.append(progress)

    def note_extension(self, attempt: Attempt, by: timedelta) -> None:
        self.extensions.append(by)

    def note_cursor(self, attempt: Attempt, name: str, position: int) -> None:
        self.cursors.append((name, position))

    def note_call(self, attempt: Attempt, resource: str, outcome: CallOutcome) -> None:
        self.calls.append((resource, outcome))

    def forget(self, attempt: Attempt) -> None:
        self.forgotten += 1

    def keep_step(self, attempt: Attempt, name: str, value: bytes) -> StepKept:
        if self.kept.live:
            self.steps[name] = value
        return self.kept

    def akeep_step(self, attempt: Attempt, name: str, value: bytes) -> asyncio.Future[StepKept]:
        loop = asyncio.get_running_loop()
        kept = FirmFuture(loop=loop)
        loop.call_soon(lambda: kept.set_result(self.keep_step(attempt, name, value)))
        return kept


class Acts:
    """Notes what it is asked to do to attempts."""

    def __init__(self) -> None:
        self.stopped: list[tuple[int, Why, str]] = []
        self.given_up: list[int] = []
        self.handed_back: list[int] = []
        self.broken_chains: list[int] = []
        self.fenced: list[str] = []
        self.hangs: list[tuple[int | None, str]] = []
        self.broke: list[str] = []

    def stop(self, attempt: Attempt, why: Why, reason: str) -> None:
        attempt.ask(why, reason, attempt.deadline_at)
        self.stopped.append((attempt.job.id, why, reason))

    def give_up(self, attempt: Attempt) -> None:
        self.given_up.append(attempt.job.id)

    def hand_back(self, attempt: Attempt) -> None:
        self.handed_back.append(attempt.job.id)

    def break_chain(self, attempt: Attempt) -> None:
        self.broken_chains.append(attempt.job.id)

    def fence(self, reason: str) -> None:
        self.fenced.append(reason)

    def hung(self, culprit: Attempt | None, stuck_for: float, stack: str) -> None:
        self.hangs.append((culprit.job.id if culprit is not None else None, stack))

    def broken(self, part: str, failure: BaseException) -> None:
        self.broke.append(part)


def an_app() -> App:
    """One task of each kind on `default`, one async on `mail`."""
    app = App()
    mail = app.queue("mail")

    @app.task(timeout="10s")
    async def on_loop(n: int = 0) -> int:
        return n

    @app.task(queue=mail)
    async def letter() -> None: ...

    return app


def a_mixed_app() -> App:
    app = an_app()

    @app.task(timeout="10s")
    def in_thread(n: int = 0) -> int:
        return n

    return app


def cards(app: App) -> dict[str, Card]:
    return cards_of(app.tasks)


def a_plan(**said: Any) -> Plan:
    fields: dict[str, Any] = {
        "queues": {"default": None},
        "concurrency": 10,
        "threads": 4,
        "isolated": 2,
        "processes": 1,
        "grace": 25.0,
        "lease": 30.0,
        "heartbeat": 5.0,
        "poll": 1.0,
        "poison": 3,
        "keep": timedelta(days=1),
        "keep_dead": timedelta(days=30),
        "max_jobs": None,
        "max_memory": None,
        "until_idle": False,
        "patience": 5.0,
        "unstarted": 1.0,
        **said,
    }
    return Plan(**fields)


def a_job(
    id: int = 1, *, task: str = "on_loop", queue: str = "default", run: int = 1, **said: Any
) -> ClaimedJob:
    fields: dict[str, Any] = {
        "args": b"{}",
        "priority": 100,
        "tenant": "",
        "tags": (),
        "correlation_id": str(id),
        "counters": Counters(),
        "attempts": None,
        "timeout": None,
        "enqueued_at": NOON,
        "claimed_at": NOON,
        **said,
    }
    return ClaimedJob(id=JobId(id), run=run, queue=queue, task=task, **fields)


def an_attempt(
    card: Card, id: int = 1, *, desk: Desk | None = None, now: float = 1000.0, **said: Any
) -> Attempt:
    job = a_job(id, task=card.name, queue=card.queue, **said)
    return Attempt(job, card, desk or Desk(), now)


def ids(attempts: Sequence[Attempt]) -> list[int]:
    return [attempt.job.id for attempt in attempts]


def end_of(attempt: Attempt) -> Ended:
    assert attempt.ended is not None
    return attempt.ended
