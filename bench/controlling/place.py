"""A fresh database of one of the stores, the product on it, and what both have used so far. Knows no measurement."""

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import psycopg

from bench.flatness.product import Worker
from bench.flatness.server import children_of, cpu_of
from duly.core.control import LimitPolicy, TaskLimit
from duly.core.job import (
    ClaimedJob,
    ClaimRequest,
    Counters,
    Ended,
    Incarnation,
    NewJob,
    QueueClaim,
    WorkerInfo,
)
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy, Registration
from duly.stores.open import open_store
from tests.services import PostgresServer

QUEUE = "default"
ARGS = b'{"customer":42,"text":"' + b"x" * 60 + b'"}'
_LONG = timedelta(hours=9)
_PART = 1_000
TASKS = ("plain", "limited", "noop", "served", "ordered")


@dataclass(frozen=True, slots=True)
class Cost:
    """Of some calls: seconds of wall time, and of processor, the product's and its server's."""

    wall: float
    cpu: float


class Place:
    """One database, used by this process through the store's own protocol, and by workers."""

    def __init__(self, url: str, folder: Path, server: PostgresServer | None) -> None:
        self.url = url
        self.folder = folder
        self.store = open_store(url)
        self.store.schema.migrate()
        self._server = server
        self._releases = 0
        self._watch = psycopg.connect(url, autocommit=True, application_name="watch") if server else None

    def declare(
        self, *limits: LimitPolicy, takes: Sequence[TaskLimit] = (), queues: Sequence[QueuePolicy] = ()
    ) -> None:
        """One more release of an App: what it does not declare any more is gone."""
        self._releases += 1
        release = Registration(
            "bench", f"release {self._releases}", tuple(queues), limits=limits, task_limits=tuple(takes)
        )
        assert self.store.schema.declare(release)

    def register(self) -> Incarnation:
        """A worker that this process plays."""
        tasks = dict.fromkeys(TASKS, _LONG)
        return self.store.leases.register(
            WorkerInfo("bench", os.getpid(), "bench:1", (QUEUE,), tasks, _LONG, timedelta(hours=1), 100, "0")
        )

    def put(self, job: Callable[[int], NewJob], count: int) -> None:
        for start in range(0, count, _PART):
            self.store.jobs.enqueue([job(number) for number in range(start, min(count, start + _PART))])

    def claim(self, me: Incarnation, most: int, *, fair: bool = False) -> tuple[ClaimedJob, ...]:
        request = ClaimRequest((QueueClaim(QUEUE, most, fair),), most)
        return self.store.jobs.exchange(me, (), request).claimed

    def complete(self, me: Incarnation, jobs: Sequence[ClaimedJob]) -> None:
        self.store.jobs.exchange(me, ended(jobs), None)

    def set_aside(self, me: Incarnation) -> float:
        """Claim until nothing is left that could be claimed, though everything is held back: seconds."""
        began = time.monotonic()
        request = ClaimRequest((QueueClaim(QUEUE, 100),), 100)
        while True:
            answer = self.store.jobs.exchange(me, (), request)
            assert not answer.claimed
            if answer.again != timedelta(0):
                return time.monotonic() - began

    def cost(self, act: Callable[[], object]) -> Cost:
        """Of calls that this process makes. A backend's processor time is the scheduler's account."""
        before, began = self._backends() + time.process_time_ns(), time.perf_counter()
        act()
        wall, client = time.perf_counter() - began, time.process_time_ns()
        return Cost(wall, (self._backends() + client - before) / 1e9)

    def used_with(self, worker: Worker) -> Cost:
        """What a worker and the server have used up to now."""
        spent = cpu_of(worker.pid) + sum(cpu_of(child) for child in children_of(worker.pid))
        if self._server is not None and self._server.pid is not None:
            pid = self._server.pid
            spent += cpu_of(pid, children=True) + sum(cpu_of(child) for child in children_of(pid))
        return Cost(time.monotonic(), spent)

    def vacuum(self) -> None:
        """As autovacuum would once there was time for it."""
        if self._watch is not None:
            self._watch.execute("vacuum (analyze)")

    @contextlib.contextmanager
    def worker(self, *options: str) -> Iterator[Worker]:
        made = Worker(self.url, self.folder, *options, application="bench.controlling.tasks:jobs")
        try:
            yield made
        finally:
            made.stop()

    def close(self) -> None:
        self.store.close()
        if self._watch is not None:
            self._watch.close()

    def _backends(self) -> int:
        if self._watch is None:
            return 0
        rows = self._watch.execute(
            "select pid from pg_stat_activity where application_name = 'duly' and datname = current_database()"
        ).fetchall()
        return sum(_on_cpu(int(pid)) for (pid,) in rows)


def ended(jobs: Sequence[ClaimedJob]) -> list[Ended]:
    none, instant = Counters(), timedelta(0)
    return [Ended(job.id, job.run, Event.complete, State.completed, none, elapsed=instant) for job in jobs]


def _on_cpu(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    except OSError:
        return 0


Make = Callable[[], contextlib.AbstractContextManager[Place]]


def maker(server: PostgresServer | None) -> Make:
    """Makes places: databases of this server, dropped afterwards, or files."""

    @contextlib.contextmanager
    def make() -> Iterator[Place]:
        with tempfile.TemporaryDirectory(prefix="duly-control-") as folder:
            database = None if server is None else server.create_database()
            url = f"sqlite:///{folder}/jobs.db"
            if server is not None and database is not None:
                url = server.url(database, host="socket")
            place = Place(url, Path(folder), server)
            try:
                yield place
            finally:
                place.close()
                if server is not None and database is not None:
                    server.drop_database(database)

    return make
