"""A shop in the middle of its day: jobs in every state, of several tenants, and a worker that is at work.

All of it came about as it does in production, through enqueues, a worker process and the verbs of operators.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from duly import App
from duly.core.lifecycle import State
from tests.browser import shop_app as shop
from tests.waiting import wait_until
from tests.web.conftest import Serving, new_token

HOSTILE = "<img src=x onerror=alert(1)>\u202egnp.exe\u0000 ' \" {{ 7 * 7 }} " + "w" * 3_000
HOSTILE_NAME = "<script>alert(1)</script> ' \" {{ 7 * 7 }}"
BROKEN = 12
"""Charges that died while the gateway was down,"""
MISSPELT = 3
"""and receipts that had no mailbox."""


@dataclass(frozen=True)
class Jobs:
    """One of each kind."""

    running: int
    """Until the file "noon" is there."""
    retrying: int
    completed: int
    skipped: int
    scheduled: int
    ready: int
    """Its queue is paused."""
    hostile: int
    """Dead; whatever can be said of it was said by somebody who means harm."""
    broken: tuple[int, ...]
    """Dead letters of one fingerprint,"""
    misspelt: tuple[int, ...]
    """and of another."""
    order: int
    """It has enqueued two others."""


@dataclass(frozen=True)
class Scene:
    """What the tests look at, and how they reach it."""

    app: App
    folder: Path
    url: str
    jobs: Jobs

    def token(self, *scopes: str) -> str:
        return new_token(self.app, *scopes)

    def state(self, id: int) -> State:
        return self.app.inspect.job(id).job.state

    def fingerprint(self, id: int) -> str:
        error = self.app.inspect.job(id).job.error
        assert error is not None
        return error.fingerprint

    def let(self, name: str) -> None:
        """Let go on what waits for a file of this name."""
        (self.folder / name).touch()


@contextmanager
def scene(folder: Path) -> Iterator[Scene]:
    """The shop on a file in this folder, served on 127.0.0.1 with a worker beside it."""
    url = f"sqlite:///{folder}/shop.db"
    app = shop.jobs.at(url)
    app.store.schema.migrate()
    with ExitStack() as stack:
        stack.callback(app.close)
        stack.enter_context(_worker(url, folder))
        wait_until(lambda: len(app.inspect.workers()) == 1, what="the worker")
        jobs = _enqueued(app)
        _operated(app)
        _settled(app, jobs)
        yield Scene(app, folder, stack.enter_context(Serving(app.asgi())).url, jobs)


def _enqueued(app: App) -> Jobs:
    app.operate.pause("reports", reason="the office counts")
    receipts = shop.send_receipt.using(app=app, tags=["checkout"])
    acme, globex = (shop.charge.using(app=app, tenant=name, tags=["card"]) for name in ("acme", "globex"))
    fetch = shop.fetch.using(app=app)
    app.enqueue_many(shop.pack.draft(order, part) for order in (31, 32) for part in range(4 + order % 31))
    with app.batch("spring sale") as batch:
        batch.add(*(receipts.draft(number, f"buyer-{number}@shop.example") for number in range(20)))
    return Jobs(
        running=shop.resize.using(app=app, tags=["album"]).enqueue("fjord.jpg", go="noon").id,
        retrying=fetch.enqueue("https://pictures.example/1.jpg").id,
        completed=receipts.enqueue(7, "ada@shop.example").id,
        skipped=shop.greet.using(app=app).enqueue("Ada").id,
        scheduled=shop.remind.using(app=app, delay="3d", tenant="acme").enqueue(8).id,
        ready=shop.report.using(app=app).enqueue("2026-11-30").id,
        hostile=receipts.using(tenant=HOSTILE_NAME, tags=[HOSTILE_NAME]).enqueue(666, HOSTILE).id,
        broken=tuple((acme, globex)[number % 2].enqueue(number, 995).id for number in range(BROKEN)),
        misspelt=tuple(receipts.enqueue(100 + number, f"ada-at-{number}").id for number in range(MISSPELT)),
        order=shop.order.using(app=app, correlation_id="order-77").enqueue(77).id,
    )


def _operated(app: App) -> None:
    operate = app.operate
    operate.tenant("acme", weight=3, max_running=10, reason="the large contract")
    operate.limit("mail", lasting="2h", max_running=4, reason="the provider asked for it")
    operate.silence("queue:reports", lasting="4h", reason="counting")
    operate.hold("gateway", "1s", reason="to see that it can be done")


def _settled(app: App, jobs: Jobs) -> None:
    """Wait until the worker has done what it can."""
    states = {
        jobs.running: State.running,
        jobs.retrying: State.scheduled,
        jobs.completed: State.completed,
        jobs.skipped: State.skipped,
        jobs.scheduled: State.scheduled,
        jobs.ready: State.ready,
        jobs.order: State.completed,
        **dict.fromkeys((jobs.hostile, *jobs.broken, *jobs.misspelt), State.dead),
    }

    def reached() -> bool:
        found = app.inspect.lookup(states)
        return [record and record.state for record in found] == list(states.values())

    wait_until(reached, timeout=150, what="the shop in the middle of its day")
    wait_until(lambda: app.inspect.job(jobs.running).job.progress, timeout=60, what="progress")


@contextmanager
def _worker(url: str, folder: Path) -> Iterator[None]:
    log = (folder / "worker.log").open("wb")
    process = subprocess.Popen(
        [sys.executable, "-m", "duly.cli.main", "worker", "tests.browser.shop_app:jobs"],
        env={**os.environ, "DULY_URL": url, "SHOP": str(folder)},
        stdout=log,
        stderr=log,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)
        log.close()
