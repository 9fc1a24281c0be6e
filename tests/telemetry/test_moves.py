"""One typed event for each step of a job's life, and none for what nobody listens to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from duly import App
from duly.telemetry.events import Happening
from duly.telemetry.hub import Hub
from duly.telemetry.moves import (
    JobClaimed,
    JobsAbandoned,
    JobsEnqueued,
    JobsExpired,
    JobsMoved,
    JobsPromoted,
    JobsUnblocked,
)
from duly.testing import FakeClock
from duly.worker.promote import Promote
from duly.worker.sweep import Sweep

HOUR = timedelta(hours=1)
CHAIN = """
from duly import App

jobs = App()

@jobs.task
async def first() -> None:
    await second.aenqueue()

@jobs.task
async def second() -> None: ...
"""


@pytest.fixture
def jobs(sqlite_url: str) -> App:
    app = App(sqlite_url)
    app.client.clock = FakeClock()
    return app


@pytest.fixture
def said(jobs: App) -> list[Happening]:
    """What producers and operators of the App say."""
    heard: list[Happening] = []
    jobs.client.tell = heard.append
    return heard


def test_an_enqueue_is_told_by_task_only_to_who_wants_details(jobs: App, said: list[Happening]) -> None:
    @jobs.task
    def send() -> None: ...

    @jobs.task
    def resize() -> None: ...

    once = send.using(idempotency_key="k")
    send.enqueue()
    jobs.client.details = True
    jobs.enqueue_many([once.draft(), once.draft(), resize.draft()])
    jobs.close()

    assert said == [JobsEnqueued("default", "send", 1, 1), JobsEnqueued("default", "resize", 1)]


def test_what_a_person_moves_is_told_with_who_did_it(
    jobs: App, said: list[Happening], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_ACTOR", "ada@ops")

    @jobs.task
    def send() -> None: ...

    job = send.using(delay="1h").enqueue().id
    jobs.operate.run_now(job, reason="a test")
    jobs.operate.cancel(job, reason="a test")
    jobs.operate.cancel(job, reason="twice")
    jobs.operate.redrive(job, reason="a test")
    jobs.close()

    assert said == [JobsMoved(verb, (job,), "ada@ops") for verb in ("run_now", "cancel", "redrive")]


def test_the_duties_tell_what_came_due_and_what_expired(jobs: App) -> None:
    @jobs.task
    def send() -> None: ...

    heard: list[Happening] = []
    hub = Hub()
    hub.listen(heard.append, details=True)
    store, clock = jobs.store, jobs.client.clock
    assert isinstance(clock, FakeClock)
    send.using(expires="1m").enqueue()
    send.using(delay="5m").enqueue()
    clock.advance("10m")

    Promote(store.upkeep, 1.0, lambda: None, hub).run(0.0)
    Sweep(store.upkeep, 3, 60.0, 1.0, lambda: None, hub).run(0.0)
    jobs.close()

    assert heard == [JobsPromoted(1), JobsExpired(1)]


def test_a_promotion_that_nobody_wants_to_hear_of_is_not_told(jobs: App) -> None:
    @jobs.task
    def send() -> None: ...

    heard: list[Happening] = []
    hub = Hub()
    hub.listen(heard.append)
    clock = jobs.client.clock
    assert isinstance(clock, FakeClock)
    send.using(delay="5m").enqueue()
    clock.advance("10m")

    Promote(jobs.store.upkeep, 1.0, lambda: None, hub).run(0.0)
    jobs.close()

    assert heard == []


def test_every_event_is_a_sentence() -> None:
    events: list[Happening] = [
        JobsEnqueued("mail", "send", 2, 1),
        JobsPromoted(1),
        JobClaimed(7, 1, "mail", "send", 1),
        JobsUnblocked(3),
        JobsExpired(1),
        JobsAbandoned(2),
        JobsMoved("cancel", tuple(range(30)), "ada"),
    ]

    assert [event.sentence() for event in events][:2] == [
        "2 jobs of send enqueued on mail; 1 job stood there already",
        "1 job came due",
    ]
    assert events[-1].sentence().endswith("19 and 10 more")
    assert all(event.sentence() for event in events)


@pytest.mark.process
def test_a_worker_that_is_asked_for_details_tells_each_step(tmp_path: Path, sqlite_url: str) -> None:
    (tmp_path / "chain.py").write_text(CHAIN)
    environment = {
        **os.environ,
        "DULY_URL": sqlite_url,
        "DULY_LOG": "json",
        "DULY_LOG_LEVEL": "debug",
        "PYTHONPATH": str(tmp_path),
    }
    duly = [sys.executable, "-m", "duly.cli.main"]
    subprocess.run([*duly, "enqueue", "-a", "chain", "first"], env=environment, check=True, timeout=60)

    done = subprocess.run(
        [*duly, "worker", "chain", "--until-idle"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )

    steps = [
        (line["event"], line.get("task"), line.get("outcome"))
        for line in map(json.loads, done.stderr.splitlines())
        if line.get("event") in {"JobClaimed", "JobsEnqueued", "AttemptEnded"}
    ]
    assert steps.index(("JobClaimed", "first", None)) < steps.index(("JobsEnqueued", "second", None))
    assert steps.index(("JobsEnqueued", "second", None)) < steps.index(("JobClaimed", "second", None))
    assert ("AttemptEnded", "first", "complete") in steps
    assert ("AttemptEnded", "second", "complete") in steps
