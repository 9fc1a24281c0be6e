"""Where a drill takes place: a store of its own, a folder, and a real worker that is started again when it has died.

Refuses a store that has jobs of others. Owns processes; decides nothing about what befalls them.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from duly.client.draft import Draft
from duly.client.encoding import new_job
from duly.client.settings import Settings, without_password
from duly.core.errors import DulyError, MigrationNeeded, UsageError
from duly.core.filters import Filter
from duly.core.job import JobId, JobRecord, NewJob
from duly.core.lifecycle import FINAL, Outcome, State
from duly.drills.drill import Broken, Drill, reference_of
from duly.drills.plan import PLACE, Order, Papers, Plan
from duly.stores.faults import Transient
from duly.stores.open import clear_schema, open_store
from duly.stores.protocol import Store
from duly.stores.urls import parse_url
from duly.worker.registration import declare

LEASE: Final = 2.0
SETTINGS: Final = {
    "DULY_LEASE": "2s",
    "DULY_HEARTBEAT": "400ms",
    "DULY_POLL": "100ms",
    "DULY_GRACE": "5s",
    # A drill kills one job's workers again and again.
    "DULY_POISON": "1000",
    "DULY_ALERTS": "log:",
}
BY: Final = "a drill"
_CORRELATION: Final = "drill-"
_LOOK: Final = 0.05
_LOOKS: Final = 2
_START: Final = 60.0
_STOP: Final = 20.0
_MOST_PUSHES: Final = 50


class InUse(DulyError):
    """The store has jobs or workers already."""


class Place(msgspec.Struct, frozen=True):
    """A store for one drill."""

    url: str
    schema: str
    own: bool
    """Nobody else's, and gone afterwards."""
    server: bool


class Ground:
    """One drill's surroundings, as a block. Workers start with `start`."""

    def __init__(
        self,
        drill: Drill,
        url: str | None,
        *,
        yes_really: bool,
        trace: bool = False,
        twice: float = 0.0,
        processes: int = 1,
        seed: int = 0,
    ) -> None:
        self.drill = drill
        self._url = url
        self._yes_really = yes_really
        self._wanted = (trace, twice, processes, seed)
        self._stack = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self._number = self._since = 0
        self._told: set[str] = set()
        self._pushes: dict[JobId, int] = {}
        self.papers = Papers(Path())
        self.place = Place("", "", own=True, server=False)
        self.starts = 0
        """Of workers; each after the first one stands for a death of a whole worker."""
        self.never = _Pause()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            folder = Path(tempfile.mkdtemp(prefix="duly-drill-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            stack.callback(self.stop)
            self.papers = Papers(folder)
            self._prepare(stack, folder)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def store(self) -> Store:
        return self.drill.app.store

    def start(self) -> None:
        """Start the worker, and wait until it works. UsageError with its own words when it cannot."""
        self._spawn()
        end = time.monotonic() + _START
        while not self.store.inspection.workers():
            code = self._process.poll() if self._process is not None else None
            if code is not None or time.monotonic() > end:
                said = self.papers.log_tail()
                raise UsageError(f"the drill's worker did not start: {said or 'it said nothing'}")
            self.never.wait(_LOOK)

    @property
    def where(self) -> str:
        """The store, for people."""
        if not self.place.server and self.place.own:
            return "a temporary SQLite file"
        schema = f", schema {self.place.schema}" if self.place.server else ""
        return without_password(self.place.url) + schema

    def tend(self) -> None:
        """Start the worker again when all of it has died."""
        if self._process is not None and self._process.poll() is not None:
            self._spawn()

    def stop(self) -> None:
        """SIGTERM, and SIGKILL to who does not end in time."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            process.wait(_STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def worker_pids(self) -> tuple[int, list[int]]:
        """(the supervisor, the processes that run jobs); 0 while there is none."""
        if self._process is None or self._process.poll() is not None:
            return 0, []
        supervisor = self._process.pid
        return supervisor, [
            worker.pid for worker in self.store.inspection.workers() if worker.pid != supervisor
        ]

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def numbers(self) -> list[int]:
        """Of the jobs made since the user's data was put back."""
        return list(range(self._since + 1, self._number + 1))

    def put_back(self) -> None:
        """Put the user's data back, where the drill says how."""
        if self.drill.befores:
            self.drill.run_befores()
            self._since = self._number

    def broken(self, *, ended: bool) -> list[Broken]:
        """Invariants that do not hold; without a way to put data back, each is told of once."""
        found = [one for one in self.drill.broken(self.numbers(), ended=ended) if one.name not in self._told]
        if not self.drill.befores:
            self._told |= {one.name for one in found}
        return found

    def job(self, n: int, order: Order | None = None) -> NewJob:
        """The n-th job, under a correlation id by which its marks are found, with what is to befall it."""
        correlation = correlation_of(n)
        if order is not None:
            self.papers.order(correlation, order)
        return msgspec.structs.replace(new_job(self.drill.draft(n), None), correlation_id=correlation)

    def enqueue(self, jobs: Sequence[NewJob]) -> list[JobId]:
        """Store them. UsageError when one is a duplicate: a drill needs each for itself."""
        stored = self.drill.app.client.call(self.store.jobs.enqueue, jobs)
        for one in stored:
            if one.outcome is not Outcome.created:
                raise UsageError(
                    f"a job of the drill is a {one.outcome} of job {one.id}: let the draft of each number have keys of "
                    "its own, such as f'receipt:{n}', or none"
                )
        return [one.id for one in stored]

    def until_over(self, n: int, patience: float, look: Callable[[], None] = lambda: None) -> list[JobRecord]:
        """Wait until the n-th job and what runs because of it have ended; the records, the first being its own.

        Retries do not wait for their backoff. Whatever is not over in time is in the answer as it stands.
        """
        end = time.monotonic() + patience
        while True:
            self.tend()
            look()
            records = self._records(Filter(correlation=correlation_of(n)))
            if records and not any(self.is_live(record) for record in records):
                return records
            if time.monotonic() > end:
                return records
            self._push(records)
            self.never.wait(_LOOK)

    def until_idle(self, patience: float, look: Callable[[], None] = lambda: None) -> list[JobRecord]:
        """Wait until nothing is ready, running or about to be tried again; what is left when time is up."""
        end = time.monotonic() + patience
        idle = 0
        while True:
            self.tend()
            look()
            live = self._live()
            # A job may pass from one state to the next between two reads; not twice in a row.
            idle = idle + 1 if live == [] else 0
            if idle == _LOOKS:
                return []
            if time.monotonic() > end:
                return self._left()
            self._push(live or [])
            self.never.wait(_LOOK)

    def records(self, state: State) -> list[JobRecord]:
        """All jobs of the drill that are in a state, and what they have enqueued."""
        found: list[JobRecord] = []
        after: int | None = 0
        while after is not None:
            page = self.store.inspection.page(Filter(state=state), after=after, limit=500)
            found += [one for one in page.jobs if one.correlation_id.startswith(_CORRELATION)]
            after = page.next
        return found

    def is_live(self, record: JobRecord) -> bool:
        """Whether something is still to come of it soon: not of a follow-up that is due next week."""
        if record.state in FINAL:
            return False
        return record.state is not State.scheduled or _began(record)

    def _records(self, filter: Filter) -> list[JobRecord]:
        try:
            found = self.store.inspection.page(filter, after=0, limit=500).jobs
        except Transient:
            return []
        return sorted(found, key=lambda record: record.id)

    def _live(self) -> list[JobRecord] | None:
        """Jobs that are due again soon; None while some are ready or run, as one look at all states tells."""
        try:
            counts = self.store.inspection.counts()
        except Transient:
            return None
        if any(one.ready or one.running or one.blocked for one in counts):
            return None
        return [one for one in self._records(Filter(state=State.scheduled)) if self.is_live(one)]

    def _left(self) -> list[JobRecord]:
        states = (State.running, State.ready, State.blocked, State.scheduled)
        return [one for state in states for one in self._records(Filter(state=state)) if self.is_live(one)]

    def _push(self, records: Sequence[JobRecord]) -> None:
        waiting = [
            one.id
            for one in records
            if one.state is State.scheduled and _began(one) and self._pushes.get(one.id, 0) < _MOST_PUSHES
        ]
        if waiting:
            with suppress(Transient):
                self.store.operator.run_now(waiting, BY, "the drill does not wait")
            for id in waiting:
                self._pushes[id] = self._pushes.get(id, 0) + 1

    def _spawn(self) -> None:
        environment = {**os.environ, **SETTINGS, PLACE: str(self.papers.folder)}
        with self.papers.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "duly.drills.worker", str(os.getpid())],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.starts += 1

    def _prepare(self, stack: ExitStack, folder: Path) -> None:
        app = self.drill.app
        app.load()
        self.place = place = _place(app.settings, self._url, folder)
        if not place.own or place.server:
            self._look_first(place)
            place = self.place
        if place.own and place.server:
            clear_schema(place.url, place.schema, drop=True)
            stack.callback(clear_schema, place.url, place.schema, drop=True)
        path = tuple(dict.fromkeys([str(Path.cwd()), *sys.path]))
        roots = _roots(self.drill)
        reference = reference_of(self.drill)
        plan = Plan(reference, path, roots, place.url, place.schema, not place.own, *self._wanted)
        self.papers.lay_out(plan)
        settings = replace(app.settings, url=place.url, schema=place.schema)
        stack.enter_context(app.client.standing_on(settings, None, lambda: _opened(place)))
        app.client.call(app.store.schema.migrate)
        app.client.call(declare, app)
        if place.own:
            for schedule in app.store.schedules.all():
                # What a schedule would enqueue is no part of the drill.
                app.store.schedules.pause(schedule.name, BY, "a drill runs")
        self.put_back()

    def _look_first(self, place: Place) -> None:
        store = _opened(place)
        try:
            jobs, workers = store.inspection.page(Filter(), limit=1).jobs, store.inspection.workers()
        except MigrationNeeded:
            return
        finally:
            store.close()
        if (jobs or workers) and not self._yes_really:
            what = "jobs" if jobs else "workers"
            where = f"{without_password(place.url)}, schema {place.schema}" if place.server else place.url
            raise InUse(
                f"{where} has {what} already, and the drill would run and kill those, too; leave --url out for "
                "a store of its own, or say --yes-really"
            )
        if jobs or workers:
            # They are somebody's: nothing of theirs is removed.
            self.place = msgspec.structs.replace(place, own=False)


class _Pause:
    """A wait that a test can see and nobody interrupts."""

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


def correlation_of(n: int) -> str:
    return f"{_CORRELATION}{n}"


def number_of(job: NewJob) -> int:
    """Which of the drill's jobs it is."""
    return int((job.correlation_id or "").removeprefix(_CORRELATION))


def tasks_of(drafts: Sequence[Draft[object]]) -> str:
    """Their names."""
    return ", ".join(dict.fromkeys(draft.declaration.name for draft in drafts))


def signalled(pid: int) -> bool:
    """SIGKILL; False when it is gone already."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _began(record: JobRecord) -> bool:
    counters = record.counters
    return bool(counters.failed or counters.lost or counters.interrupted or counters.snoozed)


def _place(own: Settings, url: str | None, folder: Path) -> Place:
    if url is None:
        return Place(f"sqlite:///{folder / 'drill.db'}", own.schema, own=True, server=False)
    address = parse_url(url)
    if address.kind == "memory":
        raise UsageError(f"{url} lives in one process, and a drill kills processes; leave --url out")
    if address.kind == "postgres":
        return Place(address.url, f"{own.schema}_drill_test", own=True, server=True)
    return Place(address.url, own.schema, own=False, server=False)


def _opened(place: Place) -> Store:
    return open_store(place.url, schema=place.schema, pool=4, durable=not place.own)


def _roots(drill: Drill) -> tuple[str, ...]:
    """Folders whose lines are the user's own: those of the handlers, and of the drill's module."""
    functions = [task.fn for task in drill.app.tasks.values()]
    files = {fn.__code__.co_filename for fn in functions if hasattr(fn, "__code__")}
    module = sys.modules.get(drill.reference.partition(":")[0])
    if module is not None and module.__file__ is not None:
        files.add(module.__file__)
    return tuple(sorted({str(Path(file).parent) + os.sep for file in files}))
