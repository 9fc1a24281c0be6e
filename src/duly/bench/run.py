"""The run: a scratch place is made, measured and removed, whatever happens. The user's jobs are never touched.

Decides what is measured and for how long; prints nothing but through `say`.
"""

import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final

from msgspec import Struct

from duly.app import App
from duly.client.settings import Settings, without_password
from duly.client.task import Task
from duly.core.errors import DulyError
from duly.stores.open import open_probe
from duly.stores.probe import Probe

from .app import RECORD, declared, read_records
from .fleet import BenchWorker, worker
from .report import Drain, Latency, Limits, Report
from .timing import Act, at_most, beside, quantile

_BULK: Final = 1000
_PATIENCE: Final = 60.0
_LOOK: Final = 0.002
_WARM_UP: Final = 0.1
"""The share of a drain that is left out: its worker was only starting."""

Say = Callable[[str], None]


class Plan(Struct, frozen=True):
    """How much of each."""

    turns: int
    turn_seconds: float
    latencies: int
    most_jobs: int
    """Rows that the bulk part may leave to be drained."""
    drain_seconds: float

    @staticmethod
    def within(seconds: float) -> "Plan":
        """About so many seconds all told: a third for the rates, a quarter for the drain, the rest for the worker."""
        turns = max(3, round(seconds * 0.4 / 6 / 0.25))
        return Plan(
            turns=turns,
            turn_seconds=0.25 if seconds >= 20 else 0.1,
            latencies=max(20, min(300, round(seconds * 2.5))),
            most_jobs=max(5_000, min(200_000, round(seconds * 4_000))),
            drain_seconds=max(2.0, seconds * 0.25),
        )


class Stopped(DulyError):
    """Somebody asked the bench to end (SIGTERM); its scratch place is removed."""


def run(settings: Settings, plan: Plan, say: Say) -> Report:
    """Measure the database of these settings; blocks for the plan's time. Errors are the store's, WorkerEnded and
    Stopped."""
    began = time.monotonic()
    probe = open_probe(settings.url)
    with _stopping(), tempfile.TemporaryDirectory(prefix="duly-bench-") as folder:
        try:
            say("making a scratch place beside your jobs")
            probe.prepare()
            return _measure(probe, settings, plan, say, Path(folder), began)
        finally:
            probe.remove()


def _measure(probe: Probe, settings: Settings, plan: Plan, say: Say, folder: Path, began: float) -> Report:
    app, task = declared(probe.url, probe.schema)
    app.client.override(notify=settings.notify, pool=settings.pool, migrate="auto")
    try:
        app.client.call(app.store.schema.migrate)
        facts = {**app.client.call(app.store.inspection.describe), "where": without_password(settings.url)}
        start = partial(worker, url=probe.url, schema=probe.schema, settings=settings)
        warnings = tuple(app.client.call(app.store.inspection.warnings))
        say("enqueue to start: one job at a time, an idle worker")
        records = folder / "latency"
        with start(folder / "first", records) as idle:
            latency = _latency(idle, task, records, plan)
        say("single and bulk enqueues, beside bare commits and rows")
        paces = beside(_acts(probe, app, task, plan), turns=plan.turns, seconds=plan.turn_seconds)
        say("draining what was enqueued, one worker process")
        records = folder / "drain"
        with start(folder / "second", records) as busy:
            drain = _drain(busy, records, _stored(app), plan)
    finally:
        app.close()
    return Report(
        store=facts,
        limits=Limits(
            round_trips_per_s=paces["round trip"].per_s,
            commits_per_s=paces["commit"].per_s,
            unsynced_commits_per_s=paces["unsynced"].per_s,
            bulk_rows_per_s=paces["rows"].per_s,
        ),
        single_per_s=paces["enqueue"].per_s,
        bulk_per_s=paces["enqueue_many"].per_s,
        drain=drain,
        latency=latency,
        seconds=time.monotonic() - began,
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        load=os.getloadavg()[0],
        spread=max(pace.spread for pace in paces.values()),
        warnings=warnings,
    )


def _acts(probe: Probe, app: App, task: Task[[float], Any], plan: Plan) -> dict[str, Act]:
    def once(act: Callable[[], object]) -> int:
        act()
        return 1

    def many() -> int:
        return len(app.enqueue_many(task.draft(0.0) for _ in range(_BULK)))

    return {
        "round trip": partial(once, probe.round_trip),
        "commit": partial(once, probe.commit),
        "unsynced": partial(once, probe.unsynced),
        "enqueue": partial(once, lambda: task.enqueue(0.0)),
        "rows": at_most(2 * plan.most_jobs, probe.bulk),
        "enqueue_many": at_most(plan.most_jobs, many),
    }


def _latency(idle: BenchWorker, task: Task[[float], Any], records: Path, plan: Plan) -> Latency:
    """One job at a time; the first one waits for the worker's start and does not count."""
    for number in range(plan.latencies + 1):
        until = time.monotonic() + _PATIENCE
        task.enqueue(time.monotonic())
        while records.stat().st_size < (number + 1) * RECORD.size if records.exists() else True:
            idle.check("a job to start", until)
            time.sleep(_LOOK)
        # So that the worker is idle again, and not in step with anything of its own.
        time.sleep(random.uniform(0.01, 0.05))
    found = [(began - sent) * 1000 for sent, began, _ in read_records(records)[1:]]
    return Latency(len(found), quantile(found, 0.5), quantile(found, 0.99))


def _stored(app: App) -> int:
    counts = app.client.call(app.store.inspection.counts)
    return sum(count.ready for count in counts)


def _drain(busy: BenchWorker, records: Path, jobs: int, plan: Plan) -> Drain:
    """Until all have begun, or the time for it is over since the first one."""
    until = time.monotonic() + _PATIENCE
    while not records.exists() or records.stat().st_size < RECORD.size:
        busy.check("the first job to start", until)
        time.sleep(_LOOK)
    end = time.monotonic() + plan.drain_seconds
    while records.stat().st_size < jobs * RECORD.size and time.monotonic() < end:
        busy.check("jobs to start", end + _PATIENCE)
        time.sleep(_LOOK * 10)
    return drained(read_records(records))


def drained(found: list[tuple[float, float, float]]) -> Drain:
    """The rate between the warm-up and the last job that began."""
    first, last = found[int(len(found) * _WARM_UP)], found[-1]
    spent = max(last[1] - first[1], 1e-9)
    counted = len(found) - int(len(found) * _WARM_UP)
    return Drain(len(found), counted / spent, min(1.0, (last[2] - first[2]) / spent))


@contextmanager
def _stopping() -> Iterator[None]:
    """SIGTERM in the block raises Stopped in the main thread, so that what was made is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Stopped("stopped by SIGTERM; the scratch place is removed")

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
