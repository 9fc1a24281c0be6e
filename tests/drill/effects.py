"""Handlers that write into a table of the user's own, and kill themselves where it hurts most.

A transactional one commits its row together with its completion: exactly one row per number. The others may write twice
after a kill, but never not at all.
"""

import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from duly import RESULT, Job
from tests.drill import ledger
from tests.drill.handlers import jobs

CREATE = "CREATE TABLE IF NOT EXISTS drill_effects (kind text NOT NULL, n bigint NOT NULL)"
ORDERS = "CREATE TABLE IF NOT EXISTS drill_orders (n bigint PRIMARY KEY)"
TRANSACTIONAL, STEP, FOLLOW_UP = "transactional", "step", "follow-up"
BOOKED, THEN, MOURNED = "booked", "after a batch", "after a death in a batch"
# Wide enough for the drill's own kills to fall into it, too.
WINDOW = 0.02


@contextmanager
def own_connection(url: str) -> Iterator[Any]:
    """A connection of the application, not duly's; its transaction is the caller's to end."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), timeout=20, isolation_level=None)
        connection.execute("PRAGMA synchronous=FULL")
        try:
            yield connection
        finally:
            connection.close()
    else:
        import psycopg

        with psycopg.connect(url) as connected:
            yield connected


def begin(connection: Any) -> None:
    """psycopg begins by itself; SQLite's writers say at once that they will write."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("BEGIN IMMEDIATE")


def write_effect(connection: Any, kind: str, n: int) -> None:
    connection.execute(f"INSERT INTO drill_effects (kind, n) VALUES ('{kind}', {n})")


def die_once(job: Job, n: int) -> None:
    """One in ten jobs kills its own process here, in its first attempt."""
    if job.attempt == 1 and n % 400 < 40:
        os.kill(os.getpid(), signal.SIGKILL)


@jobs.task(timeout="60s", isolation="process")
def transactional(job: Job, n: int) -> int:
    ledger.write(ledger.STARTED, n, int(job.id), job.attempt)
    with own_connection(os.environ["DULY_URL"]) as connection:
        begin(connection)
        write_effect(connection, TRANSACTIONAL, n)
        ledger.write(ledger.TICK, n, int(job.id), job.attempt)
        job.complete(n, connection=connection)
        die_once(job, n)
        threading.Event().wait(WINDOW)
        connection.commit()
    ledger.write(ledger.ENDED, n, int(job.id), job.attempt)
    return n


@jobs.task(timeout="60s", isolation="process")
def in_steps(job: Job, n: int) -> int:
    ledger.write(ledger.STARTED, n, int(job.id), job.attempt)

    def effect() -> int:
        with own_connection(os.environ["DULY_URL"]) as connection:
            begin(connection)
            write_effect(connection, STEP, n)
            connection.commit()
        return n

    value = job.step("effect", effect)
    ledger.write(ledger.STEPPED, n, int(job.id), job.attempt)
    die_once(job, n)
    for _ in job.each("ticks", range(5)):
        threading.Event().wait(WINDOW / 5)
        ledger.write(ledger.TICK, n, int(job.id), job.attempt)
    ledger.write(ledger.ENDED, n, int(job.id), job.attempt)
    return value


@jobs.task(timeout="60s")
def afterwards(job: Job, follows: int) -> None:
    """Gets the parent's result, which is its number."""
    with own_connection(os.environ["DULY_URL"]) as connection:
        begin(connection)
        write_effect(connection, FOLLOW_UP, follows)
        job.complete(connection=connection)
        connection.commit()


@jobs.every("1s", catch_up="all", overlap="allow")
@jobs.task(timeout="60s")
async def every_second() -> None: ...


def followed(task: Any) -> Any:
    """The task with one follow-up."""
    return task.using(then=[afterwards.draft(RESULT)])
