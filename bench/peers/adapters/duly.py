"""duly, through its public interface: what a user would write, with the defaults that a user gets.

Plain: an async no-op. Threads: a `def`. Short: 1 ms of waiting. Keys: typed arguments, tags, a unique key. Everything:
the same, one of 1,000 ordering keys, a limit, events as JSON, and a step.
"""

import asyncio
import os
import sqlite3
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg

from bench.peers.adapter import Adapter, kind, record, server, url
from duly import App, Draft, Job, Task

jobs = App(url() or None)


@jobs.task
async def plain(number: float) -> None:
    record(number)


@jobs.task
def threads(number: float) -> None:
    record(number)


@jobs.task
async def short(number: float) -> None:
    record(number)
    await asyncio.sleep(0.001)


@dataclass(frozen=True)
class Line:
    article: str
    pieces: int


@dataclass(frozen=True)
class Order:
    number: float
    placed: datetime
    lines: list[Line]


@jobs.task(unique="order:{name}")
async def keys(name: str, order: Order) -> None:  # noqa: ARG001  # it is in the key
    record(order.number)


@jobs.task(unique="order:{name}", ordering_key="customer:{customer}", max_running=1_000)
async def everything(job: Job, name: str, customer: int, order: Order) -> int:  # noqa: ARG001  # they are in the keys
    record(order.number)
    return await job.astep("count", lambda: sum(line.pieces for line in order.lines))


LIVE = ("ready", "blocked", "claimed")
PLACED = datetime(2026, 1, 1, tzinfo=UTC)
LINES = [Line("pencil", 2), Line("paper", 500)]
TASKS: dict[str, Task[[float], Any]] = {"plain": plain, "threads": threads, "short": short}
CUSTOMERS = 1_000
TAGS = ["customer:7", "bench"]
# An event for each attempt.
TOLD = ("env", "DULY_LOG=json", "DULY_LOG_LEVEL=debug")


class Duly(Adapter):
    package = "duly"

    def open(self) -> None:
        jobs.store.schema.migrate()
        self.connection: sqlite3.Connection | psycopg.Connection
        if server() == "sqlite":
            self.connection = sqlite3.connect(url().removeprefix("sqlite:///"))
            journal = jobs.store.inspection.describe()["journal"]
            self.settings = f"journal {journal}, synchronous=FULL; default slots, finished jobs kept"
        else:
            self.connection = psycopg.connect(url(), autocommit=True)
            self.settings = "psycopg, synchronous_commit on; default slots, finished jobs kept"
        self.task = TASKS.get(kind(), plain)

    def enqueue(self, number: float) -> None:
        self.task.enqueue(number)

    def enqueue_many(self, numbers: Sequence[float]) -> None:
        if kind() == "keys":
            jobs.enqueue_many(
                keys.using(tags=TAGS).draft(str(number), Order(number, PLACED, LINES)) for number in numbers
            )
        elif kind() == "everything":
            jobs.enqueue_many(
                everything.using(tags=TAGS).draft(
                    str(number), int(number) % CUSTOMERS, Order(number, PLACED, LINES)
                )
                for number in numbers
            )
        else:
            jobs.enqueue_many(self.task.draft(number) for number in numbers)

    def schedule(self, numbers: Sequence[float], due: Sequence[float]) -> None:
        jobs.enqueue_many(later(number, at) for number, at in zip(numbers, due, strict=True))

    def unfinished(self) -> int:
        """From the tables themselves, as for the other queues: the counts for people may be estimates."""
        if isinstance(self.connection, sqlite3.Connection):
            counts = [
                self.connection.execute(f"SELECT count(*) FROM duly_{table}").fetchall()[0] for table in LIVE
            ]
        else:
            counts = [
                self.connection.execute(f"SELECT count(*) FROM duly.{table}".encode()).fetchall()[0]
                for table in LIVE
            ]
        return sum(count for (count,) in counts)

    def worker(self) -> list[str]:
        processes = os.environ.get("BENCH_PROCESSES", "1")
        told = TOLD if kind() == "everything" else ()
        program = [*told, sys.executable, "-m", "duly.cli.main"]
        return [*program, "worker", f"{__name__}:jobs", "--processes", processes]


def later(number: float, at: float) -> Draft[Any]:
    return plain.using(run_at=datetime.fromtimestamp(at, UTC)).draft(number)


QUEUE = Duly
