"""No queue: the bare statements on one table with one index. What no queue on this database can be faster than, alone.

Enqueue: one INSERT a commit. Bulk: COPY by 10,000 (PostgreSQL), 1,000 rows a commit (SQLite, in duly's journal mode).
Drain: one statement (SQLite: one transaction) that deletes the last 500 and claims the next, then 500 calls.
Enqueue to first line: the INSERT with a NOTIFY, or a byte in a pipe, which wakes that loop. 1 ms handlers: 50 tasks.
"""

import asyncio
import os
import select
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec

import psycopg

from bench.peers.adapter import Adapter, chunks, kind, record, server, url
from duly import App

COPIED, CLAIMED, SLOTS = 10_000, 500, 50
COLUMNS = """
    queue text NOT NULL DEFAULT 'default', task text NOT NULL DEFAULT 'noop', state smallint NOT NULL DEFAULT 0,
    priority smallint NOT NULL DEFAULT 100, attempt smallint NOT NULL DEFAULT 0, number double precision NOT NULL
"""
INDEX = "CREATE INDEX job_ready ON job (queue, priority, id) WHERE state = 0"
INSERT = "INSERT INTO job (number) VALUES (%s)"
RUNG = f"WITH made AS ({INSERT}) SELECT pg_notify('job', '')"
IDLE = kind() == "idle"
LOOK_EVERY = 0.01
EXCHANGE = """
    WITH done AS (DELETE FROM job WHERE id = ANY(%s::bigint[]))
    UPDATE job SET state = 1, attempt = attempt + 1 WHERE id = ANY(ARRAY(
        SELECT id FROM job WHERE queue = 'default' AND state = 0
        ORDER BY priority, id LIMIT %s FOR UPDATE SKIP LOCKED))
    RETURNING id, number
"""
CLAIM = """
    UPDATE job SET state = 1, attempt = attempt + 1 WHERE id IN (
        SELECT id FROM job WHERE queue = 'default' AND state = 0 ORDER BY priority, id LIMIT ?)
    RETURNING id, number
"""


class Postgres(Adapter):
    package, settings = "psycopg", "one connection, one table, one partial index; no queue"

    def open(self) -> None:
        self.connection = psycopg.connect(url(), autocommit=True)
        self.connection.execute(
            f"CREATE TABLE job (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, {COLUMNS})".encode()
        )
        self.connection.execute(INDEX)
        self.cursor = self.connection.cursor(binary=True)

    def enqueue(self, number: float) -> None:
        self.cursor.execute(RUNG if IDLE else INSERT, [number], prepare=True)

    def enqueue_many(self, numbers: Sequence[float]) -> None:
        for chunk in chunks(numbers, COPIED):
            with self.connection.cursor().copy("COPY job (number) FROM STDIN") as copy:
                for number in chunk:
                    copy.write_row([number])

    def unfinished(self) -> int:
        row = self.connection.execute("SELECT count(*) FROM job").fetchone()
        return int(row[0]) if row else 0


Exchange = Callable[[list[int]], list[tuple[int, float]]]
"""Deletes these and claims the next."""


def exchange_postgres() -> tuple[Exchange, Callable[[], None]]:
    """And what waits until somebody rings."""
    connection = psycopg.connect(url(), autocommit=True)
    cursor = connection.cursor(binary=True)
    bell = psycopg.connect(url(), autocommit=True)
    bell.execute("LISTEN job")

    def exchange(done: list[int]) -> list[tuple[int, float]]:
        return cursor.execute(EXCHANGE, [done, CLAIMED], prepare=True).fetchall()

    def wait() -> None:
        list(bell.notifies(timeout=patience(), stop_after=1))

    return exchange, wait


def patience() -> float:
    """Seconds to wait for a bell: in a drain nobody rings."""
    return 60.0 if IDLE else LOOK_EVERY


def pipe() -> int:
    """The bell of those who have no server."""
    path = url().removeprefix("sqlite:///") + ".bell"
    with suppress(FileExistsError):
        os.mkfifo(path)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK)


def connect_sqlite() -> sqlite3.Connection:
    path = url().removeprefix("sqlite:///")
    # An App beside it, which knows what journal mode duly takes with this SQLite.
    with App(f"sqlite:///{path}.duly") as jobs:
        journal = jobs.store.inspection.describe()["journal"]
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.execute("PRAGMA synchronous = full")
    return connection


class SQLite(Adapter):
    package = "duly"

    def open(self) -> None:
        self.connection = connect_sqlite()
        self.bell = pipe()
        self.connection.execute(f"CREATE TABLE job (id integer PRIMARY KEY, {COLUMNS})")
        self.connection.execute(INDEX)
        (journal,) = self.connection.execute("PRAGMA journal_mode").fetchone()
        self.settings = f"SQLite {sqlite3.sqlite_version}, journal {journal}, synchronous=FULL; no queue"

    def enqueue(self, number: float) -> None:
        self.connection.execute("INSERT INTO job (number) VALUES (?)", [number])
        if IDLE:
            os.write(self.bell, b"!")

    def enqueue_many(self, numbers: Sequence[float]) -> None:
        for chunk in chunks(numbers):
            self.connection.execute("BEGIN IMMEDIATE")
            self.connection.executemany(
                "INSERT INTO job (number) VALUES (?)", ((number,) for number in chunk)
            )
            self.connection.execute("COMMIT")

    def unfinished(self) -> int:
        return int(self.connection.execute("SELECT count(*) FROM job").fetchone()[0])


def exchange_sqlite() -> tuple[Exchange, Callable[[], None]]:
    connection, bell = connect_sqlite(), pipe()

    def exchange(done: list[int]) -> list[tuple[int, float]]:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("DELETE FROM job WHERE id = ?", ((id,) for id in done))
        claimed = connection.execute(CLAIM, [CLAIMED]).fetchall()
        connection.execute("COMMIT")
        return claimed

    def wait() -> None:
        if select.select([bell], [], [], patience())[0]:
            os.read(bell, 4096)

    return exchange, wait


def work() -> None:
    exchange, wait = exchange_postgres() if server() == "postgres" else exchange_sqlite()
    if kind() == "short":
        run_in_slots(exchange)
        return
    done: list[int] = []
    while True:
        claimed = exchange(done)
        for _, number in claimed:
            record(number)
        done = [id for id, _ in claimed]
        if not done:
            wait()


def run_in_slots(exchange: Exchange) -> None:
    """Handlers of 1 ms in fifty slots of a loop, as fast as that one turns; the statement has a thread of its own."""
    loop = asyncio.new_event_loop()
    if find_spec("uvloop") is not None:
        import uvloop

        loop = uvloop.new_event_loop()
    loop.run_until_complete(_in_slots(exchange))


async def _in_slots(exchange: Exchange) -> None:
    # What is waiting is bounded, so that a full one holds up the next statement.
    waiting: asyncio.Queue[tuple[int, float]] = asyncio.Queue(CLAIMED)
    done: list[int] = []

    async def slot() -> None:
        while True:
            id, number = await waiting.get()
            record(number)
            await asyncio.sleep(0.001)
            done.append(id)

    slots = [asyncio.create_task(slot()) for _ in range(SLOTS)]
    while slots:
        ended, done = done, []
        claimed = await asyncio.to_thread(exchange, ended)
        for job in claimed:
            await waiting.put(job)
        if not claimed:
            await asyncio.sleep(LOOK_EVERY)


QUEUE = Postgres if server() == "postgres" else SQLite
