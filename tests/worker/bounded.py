"""What tests of bounded jobs share: both stores behind an App, a meter of who is inside, waiting for an end."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from typing import Any

from duly import App, Backoff, State
from duly.core.job import JobRecord
from duly.worker.embedded import Embedded
from duly.worker.options import WorkerOptions
from tests.waiting import wait_until

SOON = Backoff("10ms", factor=1, jitter=False)


class Meter:
    """Who is inside, and how many were at most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.inside: dict[object, int] = defaultdict(int)
        self.most: dict[object, int] = defaultdict(int)
        self.order: list[Any] = []

    def __call__(self, what: object, said: Any = None) -> None:
        with self._lock:
            self.order.append(said)
            self.inside[what] += 1
            self.most[what] = max(self.most[what], self.inside[what])

    def leave(self, what: object) -> None:
        with self._lock:
            self.inside[what] -= 1


async def some_turns() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


def records(app: App, stored: list[Any]) -> list[JobRecord]:
    found = app.store.inspection.lookup([job.id for job in stored])
    assert None not in found
    return [record for record in found if record is not None]


def all_in(app: App, stored: list[Any], state: State) -> bool:
    return {record.state for record in records(app, stored)} == {state}


def work(app: App, stored: list[Any], state: State = State.completed, **options: Any) -> None:
    with Embedded(app, WorkerOptions(**options)):
        wait_until(lambda: all_in(app, stored, state), what=f"all {state}", timeout=50)
