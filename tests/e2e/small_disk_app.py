"""The App of the small-disk test: payments that matter, analytics that give way, and their producers as a command.

CHORES names the folder of the ledgers, which stands on another disk. `python -m tests.e2e.small_disk_app QUEUE`
enqueues until a file called `stop-QUEUE` stands there; every answer is written down after it came.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from duly import App, Job, QueueFull, StoreFull

FOLDER = Path(os.environ.get("CHORES", "."))
BATCH = {"payments": 2, "analytics": 20}
PAUSE = 0.01

jobs = App()
payments = jobs.queue("payments", importance=1)
analytics = jobs.queue("analytics", importance=200, max_depth=1_000_000, when_full="shed")


def note(ledger: str, **line: object) -> None:
    """One line, in one write, so that processes do not mix theirs."""
    descriptor = os.open(FOLDER / ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, f"{json.dumps(line)}\n".encode())
    finally:
        os.close(descriptor)


def read(ledger: str) -> Iterator[dict[str, object]]:
    path = FOLDER / ledger
    if path.exists():
        yield from map(json.loads, path.read_text().splitlines())


@jobs.task(queue=payments)
async def pay(job: Job, text: str) -> None:
    note("ran", id=job.id, queue="payments")


@jobs.task(queue=analytics)
async def count(job: Job, text: str) -> None:
    note("ran", id=job.id, queue="analytics")


def produce(queue: str) -> None:
    """Enqueue without an end; what was answered stands in the ledger of the queue."""
    task = {"payments": pay, "analytics": count}[queue]
    pause = threading.Event()
    while not (FOLDER / f"stop-{queue}").exists():
        try:
            stored = jobs.enqueue_many(task.draft("x" * 1000) for _ in range(BATCH[queue]))
        except (QueueFull, StoreFull) as full:
            note(queue, refused=type(full).__name__, ids=[])
            pause.wait(PAUSE)
        else:
            note(queue, refused="", ids=[job.id for job in stored])
            if queue == "payments":
                pause.wait(PAUSE)


if __name__ == "__main__":
    produce(sys.argv[1])
