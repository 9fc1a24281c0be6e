"""The dead-letter breaker on both stores: a queue whose jobs die stops, one job tries, and it goes on or waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duly import App, DeadBreaker
from duly.core.backoff import Backoff
from duly.core.classify import Verdict
from duly.core.dead_breaker import DeadBreakerPolicy
from duly.core.decide import Policy, completed, failed
from duly.core.fingerprint import describe
from duly.core.job import ClaimedJob, ClaimRequest, NewJob, QueueClaim
from duly.telemetry.events import Happening, QueueGoesOn, QueueStopped
from duly.telemetry.hub import Hub
from duly.worker.dead_breaker import DeadBreakers
from tests.client.conftest import Hands

POLICY = DeadBreakerPolicy(share=0.5, min_ends=4)
ONCE = Policy(1, Backoff(), 10)
SECOND = timedelta(seconds=1)


class Scene:
    """A queue, a worker's hands, and the duty, all by one clock."""

    def __init__(self, url: str) -> None:
        self.now = datetime(2030, 5, 1, 12, tzinfo=UTC)
        self.app = App(url)
        self.app.client.clock = lambda: self.now
        self.store = self.app.store
        self.store.schema.migrate()
        self.hands = Hands(self.store, "send")
        self.told: list[Happening] = []
        hub = Hub()
        hub.listen(self.told.append)
        self.duty = DeadBreakers(self.store, {"default": POLICY}, hub)
        self.other = DeadBreakers(self.store, {"default": POLICY}, Hub())

    def put(self, count: int) -> None:
        self.store.jobs.enqueue([NewJob("default", "send", b"{}") for _ in range(count)])

    def claim(self, most: int = 10) -> tuple[ClaimedJob, ...]:
        request = ClaimRequest((QueueClaim("default", most),), most)
        found: tuple[ClaimedJob, ...] = ()
        for _ in range(10):
            exchange = self.store.jobs.exchange(self.hands.incarnation, [], request)
            found += exchange.claimed
            if exchange.again != timedelta(0):
                break
        return found

    def kill(self, *jobs: ClaimedJob) -> None:
        error = describe(ConnectionError("no route"))
        self.hands.end(*(failed(job, Verdict("permanent"), ONCE, 0.5, error, SECOND) for job in jobs))

    def complete(self, *jobs: ClaimedJob) -> None:
        self.hands.end(*(completed(job, None, SECOND) for job in jobs))

    def look(self, later: timedelta = SECOND) -> None:
        self.now += later
        self.store.leases.beat([self.hands.incarnation])
        self.store.upkeep.sweep(timedelta(hours=1), 3, timedelta(hours=1))
        self.duty.run(0.0)
        self.other.run(0.0)

    def stopped(self) -> bool:
        return any(pause.target == "queue:default" for pause in self.store.inspection.pauses())


@pytest.fixture(params=["sqlite", "postgres"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    scene = Scene(request.getfixturevalue(f"{request.param}_url"))
    yield scene
    scene.app.close()


def test_a_queue_whose_jobs_die_stops_and_says_so(scene: Scene) -> None:
    scene.put(10)
    jobs = scene.claim(4)
    scene.kill(*jobs[:2])
    scene.look()
    assert not scene.stopped()

    scene.kill(jobs[2])
    scene.complete(jobs[3])
    scene.look()

    (pause,) = scene.store.inspection.pauses()
    assert (pause.by, pause.until) == ("duly", scene.now + timedelta(minutes=1))
    assert pause.reason == "dead-letter breaker: 3 of its last 4 jobs died; one job tries after that"
    (override,) = scene.store.control.overrides()
    assert override.by == "duly"
    assert [type(event) for event in scene.told] == [QueueStopped]
    assert scene.claim() == ()


def test_one_job_tries_and_its_success_lets_the_queue_go_on(scene: Scene) -> None:
    scene.put(10)
    scene.kill(*scene.claim(4))
    scene.look()

    scene.look(timedelta(seconds=61))
    (trial,) = scene.claim()
    scene.look()
    assert scene.claim() == ()
    scene.complete(trial)
    scene.look()

    assert scene.store.control.overrides() == []
    assert [type(event) for event in scene.told] == [QueueStopped, QueueGoesOn]
    # What died before the trial is no reason to stop again.
    scene.look()
    assert not scene.stopped()
    assert len(scene.claim()) == 5


def test_a_trial_that_dies_stops_the_queue_twice_as_long(scene: Scene) -> None:
    scene.put(10)
    scene.kill(*scene.claim(4))
    scene.look()

    scene.look(timedelta(seconds=61))
    scene.kill(*scene.claim())
    scene.look()

    (pause,) = scene.store.inspection.pauses()
    assert pause.until == scene.now + timedelta(minutes=2)
    assert len(scene.store.control.overrides()) == 1
    assert scene.claim() == ()
    scene.look(timedelta(seconds=121))
    (trial,) = scene.claim()
    scene.complete(trial)
    scene.look()
    assert scene.store.control.overrides() == []


def test_a_try_that_takes_long_stays_the_only_one(scene: Scene) -> None:
    scene.put(10)
    scene.kill(*scene.claim(4))
    scene.look()

    scene.look(timedelta(seconds=61))
    (trial,) = scene.claim()
    scene.look(timedelta(seconds=61))
    scene.look(timedelta(seconds=61))

    assert scene.claim() == ()
    scene.complete(trial)
    scene.look()
    assert len(scene.claim()) == 5


def test_of_two_workers_that_act_at_once_one_stops_the_queue(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause, raced = scene.store.operator.pause, threading.Event()

    def pause_after_the_other(*said: Any) -> Any:
        if not raced.is_set():
            raced.set()
            scene.other.run(0.0)
        return pause(*said)

    monkeypatch.setattr(scene.store.operator, "pause", pause_after_the_other)
    scene.put(10)
    scene.kill(*scene.claim(4))

    scene.look()

    assert raced.is_set()
    assert len(scene.store.control.overrides()) == 1
    assert scene.told == []


def test_what_a_person_has_paused_is_left_alone(scene: Scene) -> None:
    scene.put(10)
    jobs = scene.claim(4)
    scene.app.operate.pause("default", reason="INC-311")
    scene.kill(*jobs)

    scene.look()

    (pause,) = scene.store.inspection.pauses()
    assert pause.reason == "INC-311"
    assert scene.store.control.overrides() == []


def test_a_person_may_resume_it_before_its_time_and_still_one_job_tries(scene: Scene) -> None:
    scene.put(10)
    scene.kill(*scene.claim(4))
    scene.look()
    scene.now += SECOND

    scene.app.operate.resume("default")
    (trial,) = scene.claim()
    scene.complete(trial)
    scene.look()

    assert scene.store.control.overrides() == []
    assert len(scene.claim()) == 5


def test_deaths_long_ago_stop_nothing(scene: Scene) -> None:
    scene.put(10)
    scene.kill(*scene.claim(4))

    scene.look(timedelta(minutes=6))

    assert not scene.stopped()


def test_a_working_fleet_stops_the_queue_by_itself(sqlite_url: str) -> None:
    jobs = App(sqlite_url)
    payouts = jobs.queue("payouts", dead_breaker=DeadBreaker(min_ends=5, cool_down="1h"))

    @jobs.task(queue=payouts, permanent=[ValueError])
    async def pay(n: int) -> None:
        raise ValueError(n)

    async def work() -> None:
        async with jobs.working(queues=["payouts"]):
            for _ in range(600):
                await jobs.aenqueue_many(pay.draft(n) for n in range(5))
                if found := await jobs.inspect.apauses():
                    assert (found[0].target, found[0].by) == ("queue:payouts", "duly")
                    return
                await asyncio.to_thread(threading.Event().wait, 0.1)
            raise AssertionError("it has not stopped")

    asyncio.run(work())
    jobs.close()
