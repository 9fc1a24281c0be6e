"""Inside a worker process of a drill: sees the store calls and the lines of handlers, and dies where it was told to.

A death is SIGKILL to this very process: no `finally`, no goodbye.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, cast

from msgspec.structs import replace

import duly
from duly.client.effects import Mark
from duly.client.job import Job, current
from duly.core.job import ClaimedJob, ClaimRequest, Ended, Exchange, FinishedStep, Incarnation, JobId
from duly.core.lifecycle import Event, State
from duly.drills.plan import Kind, Order, Papers, Plan, Point, Seen, Told, Twice
from duly.stores.protocol import Store

SLOW: Final = 0.01
"""A line that takes so many seconds can be died in the middle of."""
_OCCURRENCES: Final = 2
_HOLD: Final = 20.0
OURS: Final = str(Path(duly.__file__).parent) + os.sep
_AGAIN: Final = "the drill delivers it a second time"

Trace = Callable[[FrameType, str, Any], Any]


class Probe:
    """What one process knows of the drill."""

    def __init__(self, papers: Papers, plan: Plan) -> None:
        self.papers = papers
        self.plan = plan
        self.once: Callable[[str], bool] = _never
        """Whether jobs of a task may be delivered twice."""
        self._known: dict[JobId, ClaimedJob] = {}
        self._orders: dict[str, Order | None] = {}
        self._again: set[JobId] = set()

    def told(self, mark: Mark) -> None:
        self.papers.write(Told(mark))

    def order_of(self, correlation: str) -> Order | None:
        """Read once; who carries it out asks the files."""
        if correlation not in self._orders:
            if len(self._orders) > 10_000:
                self._orders.clear()
            self._orders[correlation] = self.papers.order_of(correlation)
        return self._orders[correlation]

    def claimed(self, job: ClaimedJob) -> None:
        self._known[job.id] = job
        self.at("claimed", job.id)

    def ended(self, id: JobId) -> None:
        self.at("after ack", id)
        self._known.pop(id, None)

    def at(self, kind: Kind, id: JobId) -> None:
        """A moment at the store."""
        job = self._known.get(id)
        order = None if job is None else self.order_of(job.correlation_id)
        if job is None or order is None:
            return
        if order.point is None:
            self.papers.write(Seen(job.correlation_id, Point(kind)))
        elif order.point.kind == kind:
            self.strike(job.correlation_id, order.point)

    def strike(self, correlation: str, point: Point) -> None:
        """Die, unless somebody has done so for this order."""
        if self.papers.take(correlation, point):
            os.kill(os.getpid(), signal.SIGKILL)
            threading.Event().wait()

    def second(self, end: Ended) -> Ended:
        """The end as it is, or one that gives the job back although its handler has ended."""
        job = self._known.get(end.id)
        if job is None or end.event is not Event.complete or not self._is_again(job):
            return end
        self.papers.write(Twice(int(job.id), job.correlation_id))
        counters = replace(job.counters, interrupted=job.counters.interrupted + 1)
        return Ended(
            end.id,
            end.run,
            Event.interrupt,
            State.ready,
            counters,
            reason=_AGAIN,
            elapsed=end.elapsed,
            cursors=end.cursors,
        )

    def _is_again(self, job: ClaimedJob) -> bool:
        if not self.plan.twice or not self.once(job.task) or job.counters.interrupted or job.follows:
            return False
        return random.Random(f"{self.plan.seed} {job.id}").random() < self.plan.twice


class ProbedStore:
    """A store whose calls about jobs and steps are seen."""

    def __init__(self, store: Store, probe: Probe) -> None:
        self._store = store
        self.jobs = ProbedJobs(store, probe)
        self.steps = ProbedSteps(store, probe)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class ProbedJobs:
    def __init__(self, store: Store, probe: Probe) -> None:
        self._jobs = store.jobs
        self._probe = probe

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jobs, name)

    def exchange(
        self, incarnation: Incarnation, ended: Sequence[Ended], request: ClaimRequest | None
    ) -> Exchange:
        probe = self._probe
        ran = [end for end in ended if end.elapsed is not None]
        for end in ran:
            probe.at("before ack", end.id)
        answer = self._jobs.exchange(incarnation, [probe.second(end) for end in ended], request)
        for end in ran:
            probe.ended(end.id)
        for job in answer.claimed:
            probe.claimed(job)
        return answer

    def extend(self, incarnation: Incarnation, id: JobId, run: int, by: Any) -> bool:
        self._probe.at("before extend", id)
        live = self._jobs.extend(incarnation, id, run, by)
        self._probe.at("after extend", id)
        return live


class ProbedSteps:
    def __init__(self, store: Store, probe: Probe) -> None:
        self._steps = store.steps
        self._probe = probe

    def __getattr__(self, name: str) -> Any:
        return getattr(self._steps, name)

    def keep_steps(self, incarnation: Incarnation, steps: Sequence[FinishedStep]) -> list[bool | None]:
        for step in steps:
            self._probe.at("before step", step.id)
        kept = self._steps.keep_steps(incarnation, steps)
        for step in steps:
            self._probe.at("after step", step.id)
        return kept


def probed(store: Store, probe: Probe) -> Store:
    """The same store, seen."""
    return cast(Store, ProbedStore(store, probe))


class _Life:
    """One attempt, line by line."""

    def __init__(self, correlation: str, order: Order) -> None:
        self.correlation = correlation
        self.order = order
        self.counts: Counter[tuple[str, int]] = Counter()
        self.held = False


class Tracer:
    """Follows the lines of the user's own code while a handler runs, on whatever thread or loop that is."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._roots = probe.plan.roots
        self._lives: dict[tuple[object, int], _Life | None] = {}
        self._theirs: dict[CodeType, bool] = {}

    def install(self) -> None:
        """For this thread and all that are started from now on."""
        threading.settrace(self)
        sys.settrace(self)

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Trace | None:
        code = frame.f_code
        theirs = self._theirs.get(code)
        if theirs is None:
            theirs = self._theirs[code] = self.is_theirs(code.co_filename)
        if not theirs or code.co_name == "<module>" or current.get() is None:
            return None
        return self._follow()

    def is_theirs(self, file: str) -> bool:
        """Whether a file is the user's own code."""
        return file.startswith(self._roots) and "site-packages" not in file and not file.startswith(OURS)

    def _follow(self) -> Trace:
        """One frame, which may be that of a coroutine that goes on."""
        before: list[tuple[_Life, Point, float]] = []

        def follow(frame: FrameType, event: str, _: Any) -> Trace:
            if before:
                self._passed(*before.pop())
            if event == "line":
                life = self._life()
                if life is not None:
                    point = self._reached(life, frame)
                    if point is not None:
                        before.append((life, point, time.monotonic()))
            return follow

        return follow

    def _life(self) -> _Life | None:
        job = current.get()
        if job is None:
            return None
        key = (job.id, job.token.run if job.token is not None else 0)
        if key not in self._lives:
            self._lives[key] = self._begun(job)
        return self._lives[key]

    def _begun(self, job: Job) -> _Life | None:
        order = self._probe.papers.order_of(job.correlation_id)
        return None if order is None else _Life(job.correlation_id, order)

    def _reached(self, life: _Life, frame: FrameType) -> Point | None:
        code, line = frame.f_code, frame.f_lineno
        wanted = life.order.point
        if wanted is not None and wanted.kind == "extending" and not life.held:
            life.held = True
            self._hold(life.correlation)
        place = (code.co_filename, line)
        life.counts[place] += 1
        occurrence = life.counts[place]
        if occurrence > _OCCURRENCES:
            return None
        point = Point("line", code.co_filename, line, code.co_name, occurrence)
        if wanted is None:
            self._probe.papers.write(Seen(life.correlation, point))
            return point
        if (wanted.file, wanted.line, wanted.occurrence) == (*place, occurrence):
            if wanted.kind == "line":
                self._probe.strike(life.correlation, wanted)
            elif wanted.kind == "inside":
                timer = threading.Timer(wanted.after, self._probe.strike, (life.correlation, wanted))
                timer.daemon = True
                timer.start()
        return None

    def _passed(self, life: _Life, point: Point, since: float) -> None:
        took = time.monotonic() - since
        if took >= SLOW and point.occurrence == 1:
            inside = Point("inside", point.file, point.line, point.function, 1, took / 2)
            self._probe.papers.write(Seen(life.correlation, inside))

    def _hold(self, correlation: str) -> None:
        """Wait for a heartbeat, at which the supervisor kills us all."""
        self._probe.papers.hold(correlation)
        threading.Event().wait(_HOLD)


class BeatenStore:
    """A supervisor's store: at a heartbeat while a handler waits for it, the supervisor dies, and its children do."""

    def __init__(self, store: Store, papers: Papers) -> None:
        self._store = store
        self.leases = BeatenLeases(store, papers)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class BeatenLeases:
    def __init__(self, store: Store, papers: Papers) -> None:
        self._leases = store.leases
        self._papers = papers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._leases, name)

    def beat(self, incarnations: Sequence[Incarnation]) -> frozenset[Incarnation]:
        live = self._leases.beat(incarnations)
        with suppress(OSError):
            for correlation in self._papers.held():
                if self._papers.take(correlation, Point("extending")):
                    os.kill(os.getpid(), signal.SIGKILL)
        return live


def _never(_: str) -> bool:
    return False
