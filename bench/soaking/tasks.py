"""The application of the soak: two tasks that write down when they began, and which job is which.

SOAK_URL is the database, SOAK_KEEP the retention, SOAK_RECORDS a folder with one file for each worker process.
"""

import os
import struct
import time
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path

from duly import App, Backoff, Draft, Job

RECORD = struct.Struct("<IIdd")
"""Job, which run (see Run), when it was due to be enqueued, when its handler began; both on the machine's clock."""


class Run(IntEnum):
    """What one run of a handler was."""

    done = 0
    refused = 1


class Kind(IntEnum):
    """What the k-th enqueue of a producer is."""

    plain = 0
    flaky = 1
    """Fails at its first attempt: 2 %."""
    unique = 2
    """With a unique key: 10 %."""
    once = 3
    """With an idempotency key: 1 %."""
    repeat = 4
    """The same request as the one before, with its idempotency key: 0.1 %, and stores nothing."""


class Refused(Exception):
    """What a flaky job fails with."""


jobs = App(os.environ.get("SOAK_URL", "postgresql:///"))
jobs.queue("work", keep=os.environ.get("SOAK_KEEP", "60s"))
_file: list[int] = []


@jobs.lifespan
def recording() -> Iterator[None]:
    path = Path(os.environ["SOAK_RECORDS"]) / f"{os.getpid()}.records"
    _file.append(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT))
    yield
    os.close(_file.pop())


@jobs.task(queue="work")
async def steady(number: int, due: float) -> None:
    os.write(_file[0], RECORD.pack(number, Run.done, due, time.monotonic()))


@jobs.task(queue="work", backoff=Backoff("1s", factor=1, cap="1s"))
async def flaky(job: Job, number: int, due: float) -> None:
    run = Run.refused if job.attempt == 1 else Run.done
    os.write(_file[0], RECORD.pack(number, run, due, time.monotonic()))
    if run is Run.refused:
        raise Refused(f"job {number} fails at its first attempt")


def kind_of(k: int) -> Kind:
    """The same for producers and for the ledger."""
    if k % 50 == 0:
        return Kind.flaky
    if k % 10 == 1:
        return Kind.unique
    if k % 100 == 2:
        return Kind.once
    return Kind.repeat if k % 1000 == 3 and k > 3 else Kind.plain


def draft(k: int, number: int, due: float) -> Draft[object]:
    """The k-th job of a producer."""
    match kind_of(k):
        case Kind.flaky:
            return flaky.draft(number, due)
        case Kind.unique:
            return steady.using(unique_key=f"order:{number}").draft(number, due)
        case Kind.once:
            return steady.using(idempotency_key=f"request:{number}").draft(number, due)
        case _:
            return steady.draft(number, due)
