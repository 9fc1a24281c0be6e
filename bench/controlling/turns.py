"""One of 200 tenants has a million jobs waiting: how soon do jobs of the others start, and is no slot left idle?

A worker with slots for a few of them; the others' jobs come one by one. What counts is the time from the enqueue, where
jobs take long from the first slot that was freed after it.
"""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.controlling.place import Make, Place
from bench.controlling.report import Report, milliseconds, number
from bench.controlling.tasks import BIG, SLOTS, TIMES
from duly.core.job import NewJob
from duly.core.registration import QueuePolicy
from tests.services import PostgresServer

LATE = 0.1
OTHERS = 199
_QUEUE = "tenants"
_PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Run:
    """One job of a tenant, as its handler wrote it down."""

    big: bool
    sent_at: float
    started_at: float
    ended_at: float


@dataclass(frozen=True, slots=True)
class Phase:
    """How long jobs last, and how many of the others come how far apart."""

    seconds: float
    pickups: int
    apart: float

    @property
    def name(self) -> str:
        return "next to nothing" if not self.seconds else f"{number(self.seconds)} s"


PHASES = (Phase(0.0, 300, 0.02), Phase(0.1, 300, 0.03), Phase(10.0, 60, 0.4))
SHORT = (Phase(0.0, 5, 0.02), Phase(0.1, 5, 0.02), Phase(0.5, 5, 0.02))


def run(
    store: str, make: Make, server: PostgresServer | None, report: Report, jobs: int, phases: Sequence[Phase]
) -> None:
    with make() as place:
        place.declare(queues=[QueuePolicy(_QUEUE, fair=True)])
        place.put(lambda _: _job(BIG), jobs)
        place.vacuum()
        for phase in phases:
            watched = report.watch(server)
            alone, stored, runs = _measure(place, phase)
            report.saw(watched)
            if phase.seconds:
                what = f"slots of {SLOTS} that one tenant alone uses, jobs of {phase.name}"
                report.row(store, what, ("", ""), alone, SLOTS, at_least=True)
            late = sorted(_lateness(runs, stored, phase))
            middle, worst = late[len(late) // 2], late[min(len(late) - 1, len(late) * 99 // 100)]
            what = f"pickup of other tenants, p50 and p99, beside {jobs:,} of one, jobs of {phase.name}"
            cells = (milliseconds(middle), milliseconds(worst))
            report.row(store, what, cells, worst * 1e3, LATE * 1e3, " ms")


def _job(who: str, sent_at: float = 0.0) -> NewJob:
    args = b'{"who":"%s","sent_at":%r}' % (who.encode(), sent_at)
    return NewJob(_QUEUE, "served", args, tenant=who, fair=True)


def _measure(place: Place, phase: Phase) -> tuple[int, dict[float, float], list[Run]]:
    """How many slots one tenant used alone; when the others' jobs were stored, by when they were sent; every run."""
    log = place.folder / f"runs-{phase.seconds}"
    # The last phase may have run all there were.
    place.put(lambda _: _job(BIG), 4 * SLOTS)
    os.environ.update(CONTROL_SECONDS=str(phase.seconds), CONTROL_LOG=str(log))
    with place.worker("--queues", _QUEUE, "--concurrency", str(SLOTS), "--grace", "1s") as worker:
        worker.until(1)
        alone = _alone(place) if phase.seconds else 0
        stored = {}
        for number in range(phase.pickups):
            sent_at = time.time()
            place.store.jobs.enqueue([_job(f"tenant {number % OTHERS}", sent_at)])
            stored[sent_at] = time.time()
            time.sleep(phase.apart)
        give_up = time.monotonic() + _PATIENCE
        while sum(not one.big for one in _read(log)) < phase.pickups:
            if time.monotonic() > give_up:
                raise SystemExit("jobs of the other tenants have not run")
            time.sleep(0.05)
    del os.environ["CONTROL_LOG"]
    return alone, stored, _read(log)


def _alone(place: Place) -> int:
    """The most that ran at once while nobody else was there."""
    give_up, most = time.monotonic() + 20, 0
    while most < SLOTS and time.monotonic() < give_up:
        counts = place.store.inspection.counts()
        most = max(most, *(count.running for count in counts if count.queue == _QUEUE))
        time.sleep(0.05)
    return most


def _read(log: Path) -> list[Run]:
    if not log.exists():
        return []
    data = log.read_bytes()
    whole = len(data) // TIMES.size * TIMES.size
    return [Run(*fields) for fields in TIMES.iter_unpack(data[:whole])]


def _lateness(runs: Sequence[Run], stored: Mapping[float, float], phase: Phase) -> list[float]:
    """Seconds that each of the others' jobs waited while there was a slot for it."""
    others = sorted((one for one in runs if not one.big), key=lambda one: one.sent_at)
    if phase.seconds < 1:
        return [one.started_at - one.sent_at for one in others]
    ends = iter(sorted(one.ended_at for one in runs))
    late = []
    for one in others:
        # Who came before has the slots that were freed before, and a claim sees what was committed before it.
        freed = next((at for at in ends if at >= stored[one.sent_at]), one.sent_at)
        late.append(one.started_at - (freed if freed <= one.started_at else one.sent_at))
    return late
