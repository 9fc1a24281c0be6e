"""Schedulers for the cron scenarios: the duty alone on a store, by a clock that only the test moves.

As a program (`python -m tests.scenarios.schedulers URL CLOCK`) one scheduler that runs until it is killed; its clock
is a file.
"""

import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from msgspec.structs import replace

from duly.client.scheduled import Declared
from duly.core.filters import Filter
from duly.core.job import JobRecord, NewJob
from duly.core.registration import Schedule, ScheduleRecord
from duly.core.schedule import checked, first_due
from duly.stores.open import open_store
from duly.stores.protocol import Store
from duly.telemetry.events import Happening
from duly.telemetry.hub import Hub
from duly.testing.conformance import Bench
from duly.worker.schedules import Schedules

ROOT = Path(__file__).parents[2]
DIGEST = NewJob("default", "digest", b"{}")
MINUTE = timedelta(minutes=1)
_CLOCK = struct.Struct("d")


class Scheduler:
    """What every worker has of this: the duty, and what it said."""

    def __init__(self, store: Store, declared: Mapping[str, Declared] | None = None) -> None:
        self.store = store
        self.said: list[Happening] = []
        hub = Hub()
        hub.listen(self.said.append)
        self._duty = Schedules(store, declared or {}, hub, lambda: store.inspection.now().timestamp())

    def work(self) -> None:
        """Look until nothing is left to do at this moment of the clock."""
        while self._duty.run(0.0) == 0.0:
            pass


def put(store: Store, schedule: Schedule) -> ScheduleRecord:
    """Store a schedule as `jobs.schedule` does; its job is DIGEST unless it brings one."""
    complete = checked(schedule if schedule.job is not None else replace(schedule, job=DIGEST))
    return store.schedules.put(complete, first_due(complete, store.inspection.now()))


def record(store: Store, name: str = "digest") -> ScheduleRecord:
    (found,) = [each for each in store.schedules.all() if each.schedule.name == name]
    return found


def made(store: Store, task: str = "digest") -> list[JobRecord]:
    """The jobs of a task, oldest first."""
    found: list[JobRecord] = []
    after: int | None = 0
    while after is not None:
        page = store.inspection.page(Filter(task=task), after=after, limit=500)
        found += page.jobs
        after = page.next
    return sorted(found, key=lambda job: job.id)


def due_times(store: Store, task: str = "digest") -> list[datetime]:
    """When the jobs of a task were due, as they say themselves."""
    return [datetime.fromisoformat((job.trigger or "").partition("@")[2]) for job in made(store, task)]


def simulate(bench: Bench, span: timedelta, step: timedelta, look: Callable[[], None]) -> None:
    """Move the clock on in steps, with a look after each."""
    for _ in range(span // step):
        bench.clock.advance(step)
        look()


def set_clock(path: Path, now: datetime) -> None:
    """Readers see the old time or the new one, never half of each."""
    new = path.with_suffix(".new")
    new.write_bytes(_CLOCK.pack(now.timestamp()))
    new.replace(path)


def read_clock(path: Path) -> datetime:
    return datetime.fromtimestamp(_CLOCK.unpack(path.read_bytes())[0], UTC)


class Crowd:
    """Scheduler processes on one database."""

    def __init__(self, url: str, clock: Path, count: int) -> None:
        self._command = [sys.executable, "-m", "tests.scenarios.schedulers", url, str(clock)]
        self._starting: list[subprocess.Popen[bytes]] = []
        self._processes = [self._start() for _ in range(count)]

    def replace(self, count: int) -> None:
        """Kill the first ones, at once, and start as many; returns when those look."""
        for process in self._processes[:count]:
            process.kill()
        for process in self._processes[:count]:
            process.communicate()
        self._processes[:count] = [self._start() for _ in range(count)]
        self._wait()

    def __enter__(self) -> Self:
        try:
            self._wait()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(self._command, cwd=ROOT, stdout=subprocess.PIPE)
        self._starting.append(process)
        return process

    def _wait(self) -> None:
        while self._starting:
            process = self._starting.pop()
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n", "a scheduler did not start"

    def _end(self) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.communicate()


def main() -> None:
    url, clock = sys.argv[1:]
    scheduler = Scheduler(open_store(url, clock=lambda: read_clock(Path(clock))))
    scheduler.work()
    os.write(1, b"ready\n")
    pause = threading.Event()
    while not pause.wait(0.02):
        scheduler.work()


if __name__ == "__main__":
    main()
