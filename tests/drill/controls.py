"""Handlers of jobs that something bounds: ordering keys, turns of tenants, caps, rates, a breaker, locks, batches.

Every bound is named here with its number; the audits read them from here. What a handler does is seen in the ledger.
"""

import asyncio
import os
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from duly import Backoff, Breaker, Dead, Job, PerKey, Skip, Snooze, UsageError
from duly.core.job import JobRecord
from tests.drill import ledger
from tests.drill.effects import BOOKED, MOURNED, THEN, begin, own_connection, write_effect
from tests.drill.handlers import PAUSE, TICKS, jobs, ticking

LONG_TICKS = 60
SOON = Backoff("50ms", factor=2, cap="400ms")
LOCKS = ("ledger", "press", "door")
CUSTOMERS = 8
TENANTS = ("acme", "bolt", "cask", "dune", "elm")
QUEUE_CAP, TASK_CAP, CUSTOMER_CAP, API_CAP, DESK_CAP, TENANT_CAP = 8, 5, 1, 4, 3, 2
QUEUE_PACE, API_PACE, TENANT_PACE = (200, 20), (100, 20), (40, 10)
"""(starts a second, burst)"""

PERMIT = "2s"
"""What a killed producer held comes back after that long."""

jobs.queue("locks")
jobs.queue("waiting")
jobs.queue("quick", serialise=True)
jobs.queue("skipping", ordering="skip_dead")
jobs.queue("pausing", ordering="pause_key")
capped = jobs.queue("capped", max_running=QUEUE_CAP, rate="{}/s burst {}".format(*QUEUE_PACE))
turns = jobs.queue(
    "turns",
    fair=True,
    tenant_max_running=TENANT_CAP,
    tenant_rate="{}/s burst {}".format(*TENANT_PACE),
    reserve="10%",
)
api = jobs.resource(
    "api",
    max_running=API_CAP,
    rate="{}/s burst {}".format(*API_PACE),
    breaker=Breaker(failures=0.5, min_calls=5, window="2s", cool_down="500ms"),
    ttl=PERMIT,
)
desk = jobs.resource("desk", max_running=DESK_CAP, ttl=PERMIT)
press = jobs.lock("press", ttl=PERMIT)


class Stumble(Exception):
    """An error that the next attempt does not meet."""


def healing_file() -> Path:
    """While it is missing, some jobs die: whoever redrives them after that sees them end well."""
    return Path(os.environ[ledger.PATH] + ".healed")


def begun(job: Job, n: int) -> None:
    """The first sign of life, and for some numbers an end: one in eleven stumbles, one in 37 dies, some are put off."""
    ledger.write(ledger.STARTED, n, int(job.id), job.attempt)
    if n % 11 == 3 and job.attempt == 1:
        raise Stumble
    if n % 37 == 5 and not healing_file().exists():
        raise Dead("not healed yet")
    if n % 17 == 4 and int(time.time() * 4) % 2:
        raise Snooze("50ms")
    if n % 41 == 7:
        raise Skip("not needed")


async def lively(job: Job, n: int, ticks: int = TICKS) -> int:
    """One in three takes a while, so that what freezes a process finds it inside of something."""
    for _ in range(ticks + LONG_TICKS * (n % 3 == 0 and ticks > 0)):
        await asyncio.sleep(PAUSE)
        ledger.write(ledger.TICK, n, int(job.id), job.attempt)
    ledger.write(ledger.ENDED, n, int(job.id), job.attempt)
    return n


@jobs.task(queue="quick", ordering_key="{key}", timeout="60s", backoff=SOON)
async def keyed_quick(job: Job, n: int, key: str) -> int:
    """So short that a worker takes several of one key at once."""
    begun(job, n)
    return await lively(job, n, 0)


@jobs.task(queue="waiting", ordering_key="{key}", timeout="60s", backoff=SOON)
async def keyed(job: Job, n: int, key: str) -> int:
    begun(job, n)
    return await lively(job, n)


@jobs.task(queue="waiting", ordering_key="{key}", timeout="60s", backoff=SOON)
def keyed_in_a_thread(job: Job, n: int, key: str) -> int:
    begun(job, n)
    return ticking(job, n)


@jobs.task(queue="waiting", ordering_key="{key}", timeout="60s", backoff=SOON, isolation="process")
def keyed_booked(job: Job, n: int, key: str) -> int:
    """Ends in its own transaction: the key goes on with its commit."""
    begun(job, n)
    with own_connection(os.environ["DULY_URL"]) as connection:
        begin(connection)
        write_effect(connection, BOOKED, n)
        job.complete(n, connection=connection)
        ledger.write(ledger.ENDED, n, int(job.id), job.attempt)
        connection.commit()
    return n


@jobs.task(queue=capped, max_running=TASK_CAP, uses=[api], timeout="60s", backoff=SOON)
async def call(job: Job, n: int, customer: Annotated[int, PerKey(max_running=CUSTOMER_CAP)]) -> int:
    """For one second of six the API is down."""
    begun(job, n)
    if int(time.time()) % 6 == 0 and not healing_file().exists():
        raise ConnectionError("down")
    return await lively(job, n, 3)


@jobs.task(queue=capped, timeout="60s", backoff=SOON)
def asks(job: Job, n: int) -> int:
    """Takes its resource in its code."""
    begun(job, n)
    with desk:
        return ticking(job, n)


@jobs.task(queue=turns, tenant="{tenant}", timeout="60s", backoff=SOON)
async def turn(job: Job, n: int, tenant: str) -> int:
    begun(job, n)
    return await lively(job, n, 5)


@jobs.task(queue=turns, tenant="{tenant}", ordering_key="{key}", timeout="60s", backoff=SOON)
async def keyed_turn(job: Job, n: int, tenant: str, key: str) -> int:
    begun(job, n)
    return await lively(job, n, 5)


@jobs.task(queue="locks", timeout="60s", backoff=SOON)
async def locked(job: Job, n: int, lock: int) -> int:
    begun(job, n)
    async with job.lock(LOCKS[lock]):
        ledger.write(ledger.LOCKED, lock, int(job.id), job.attempt)
        await lively(job, n, 3)
        ledger.write(ledger.UNLOCKED, lock, int(job.id), job.attempt)
    return n


@jobs.task(queue="locks", timeout="60s", backoff=SOON)
def locked_in_a_thread(job: Job, n: int, lock: int) -> int:
    begun(job, n)
    with job.lock(LOCKS[lock]):
        ledger.write(ledger.LOCKED, lock, int(job.id), job.attempt)
        threading.Event().wait(PAUSE)
        ledger.write(ledger.UNLOCKED, lock, int(job.id), job.attempt)
    ledger.write(ledger.ENDED, n, int(job.id), job.attempt)
    return n


@jobs.task(timeout="60s", backoff=SOON)
async def grows(job: Job, n: int) -> int:
    """Brings more into its own batch, once more with each run."""
    begun(job, n)
    with suppress(UsageError):  # its producer died in the middle, and the batch was cancelled
        await jobs.batch_of(job).aadd(leaf.draft(n), leaf.draft(n))
    return await lively(job, n, 1)


@jobs.task(timeout="60s")
async def leaf(of: int) -> int:
    return of


@jobs.task(timeout="60s")
def after_all(job: Job, batch: int) -> None:
    write_and_complete(job, THEN, batch)


@jobs.task(timeout="60s")
def after_a_death(job: Job, batch: int) -> None:
    write_and_complete(job, MOURNED, batch)


def write_and_complete(job: Job, kind: str, n: int) -> None:
    with own_connection(os.environ["DULY_URL"]) as connection:
        begin(connection)
        write_effect(connection, kind, n)
        job.complete(connection=connection)
        connection.commit()


def key_of_job(record: JobRecord) -> str | None:
    """The whole name of its ordering key, with its scope."""
    if record.ordering_key is None:
        return None
    return f"key {record.queue} {record.tenant} {record.ordering_key}"


def limits_of_job(record: JobRecord, arguments: dict[str, Any]) -> Iterable[str]:
    """The limits that its claim takes."""
    if record.queue == "capped":
        yield "queue:capped"
    if record.queue == "turns":
        yield f"tenant:turns={record.tenant}"
    if record.task == "call":
        yield from ("task:call", f"task:call#customer={arguments['customer']}", "resource:api")


def caps() -> dict[str, int]:
    """How many may run of every limit, by its name; locks are of one."""
    return {
        "queue:capped": QUEUE_CAP,
        "task:call": TASK_CAP,
        "resource:api": API_CAP,
        "resource:desk": DESK_CAP,
        **{f"task:call#customer={customer}": CUSTOMER_CAP for customer in range(CUSTOMERS)},
        **{f"tenant:turns={tenant}": TENANT_CAP for tenant in TENANTS},
        **{f"lock:{name}": 1 for name in LOCKS},
    }


def paces() -> dict[str, tuple[int, int]]:
    """(starts a second, burst) of every limit that has a rate."""
    return {
        "queue:capped": QUEUE_PACE,
        "resource:api": API_PACE,
        **{f"tenant:turns={tenant}": TENANT_PACE for tenant in TENANTS},
    }
