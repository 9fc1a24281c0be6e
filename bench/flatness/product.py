"""duly as it is installed, on one database of the server: an App that enqueues and a real `duly worker` process.

Knows how to let jobs flow through and what that has cost. What is enqueued is one no-op job with one small argument.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.flatness import tasks
from bench.flatness.server import Meter, Used, children_of, resident
from duly import App
from tests.services import PostgresServer

PATIENCE = 600.0
BATCH = 20_000


class Worker:
    """One `duly worker` process on the database."""

    def __init__(
        self, url: str, folder: Path, *options: str, application: str = "bench.flatness.tasks:jobs"
    ) -> None:
        path = folder / f"counter-{time.monotonic_ns()}"
        self.counter = tasks.Counter(path)
        self._log = (folder / "worker.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "duly.cli.main", "worker", application, *options],
            env=dict(os.environ, FLAT_URL=url, FLAT_COUNTER=str(path)),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        self.pid = self._process.pid

    @property
    def resident(self) -> dict[str, float]:
        """MB of each of its processes."""
        return {"supervisor": resident(self.pid)} | {
            f"process {place}": resident(pid) for place, pid in enumerate(children_of(self.pid), 1)
        }

    def until(self, count: int) -> None:
        """Wait until so many jobs have run."""
        give_up = time.monotonic() + PATIENCE
        while self.counter.value < count:
            if self._process.poll() is not None:
                told = Path(self._log.name).read_text()[-2000:]
                raise SystemExit(f"the worker ended with {self._process.returncode}:\n{told}")
            if time.monotonic() > give_up:
                raise SystemExit(
                    f"{count - self.counter.value} jobs are still waiting after {PATIENCE:.0f} s"
                )
            time.sleep(0.002)

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


class Product:
    """One migrated database, its App and, once asked for, its worker."""

    def __init__(self, server: PostgresServer, database: str, folder: Path) -> None:
        self.server = server
        self.database = database
        self.url = server.url(database)
        self.app: App = tasks.jobs.at(self.url)
        self.folder = folder
        self.worker: Worker | None = None
        self.enqueued = 0

    def start_worker(self, *options: str) -> Worker:
        self.worker = Worker(self.url, self.folder, *options)
        return self.worker

    def stop_worker(self) -> None:
        worker, self.worker = self.worker, None
        if worker is not None:
            worker.stop()

    def meter(self) -> Meter:
        return Meter(self.server, self.worker.pid if self.worker else None)

    def connect(self) -> "psycopg.Connection[tuple[object, ...]]":
        return psycopg.connect(self.server.url(self.database, host="socket"), autocommit=True)

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        return self.server.execute(statement, database=self.database)

    def enqueue(self, count: int) -> None:
        """In transactions of 1,000."""
        for start in range(0, count, 1_000):
            some = range(start, min(count, start + 1_000))
            self.app.enqueue_many(tasks.noop.draft(number) for number in some)

    def flow(self, count: int) -> None:
        """Enqueue so many with the worker beside it, and wait until they have run."""
        assert self.worker is not None
        goal = self.worker.counter.value + count
        self.enqueue(count)
        self.worker.until(goal)

    def worker_catches_up(self) -> None:
        """Wait until nothing is ready or running."""
        give_up = time.monotonic() + PATIENCE
        while self.execute("select true from duly.ready union all select true from duly.claimed limit 1"):
            if time.monotonic() > give_up:
                raise SystemExit(f"jobs are still waiting after {PATIENCE:.0f} s")
            time.sleep(0.05)

    def drain(self, count: int, *, backlog: bool = False) -> "Drained":
        """Let the worker run so many jobs that wait already: what each has cost. A backlog is there before."""
        assert self.worker is not None
        operate = self.app.operate
        operate.pause("default", reason="measuring")
        if not backlog:
            self.enqueue(count)
        meter = self.meter()
        began = self.worker.counter.value
        operate.resume("default", reason="measuring")
        # The first tenth wakes the worker and fills its slots.
        self.worker.until(began + count // 10)
        first, before = self.worker.counter.value, meter.read()
        self.worker.until(began + count)
        last, after = self.worker.counter.value, meter.read()
        meter.close()
        return Drained(max(1, last - first), after - before)


@dataclass(frozen=True, slots=True)
class Drained:
    """So many jobs, and what they have used."""

    jobs: int
    used: Used

    @property
    def rate(self) -> float:
        """Jobs per second of wall time."""
        return self.jobs / self.used.wall

    @property
    def server_us(self) -> float:
        return self.used.server / self.jobs * 1e6

    @property
    def worker_us(self) -> float:
        return self.used.worker / self.jobs * 1e6

    @property
    def us(self) -> float:
        """CPU microseconds per job, PostgreSQL and worker together."""
        return self.server_us + self.worker_us

    @property
    def wal(self) -> float:
        return self.used.wal / self.jobs


@contextlib.contextmanager
def product(server: PostgresServer) -> Iterator[Product]:
    """An App on a fresh, migrated database of the server, dropped afterwards."""
    with tempfile.TemporaryDirectory(prefix="duly-flat-") as folder:
        made = Product(server, server.create_database(), Path(folder))
        try:
            made.app.store.schema.migrate()
            yield made
        finally:
            made.stop_worker()
            made.app.close()
            server.drop_database(made.database)
