"""No queue: the bare statements on one table with one index. What no queue on this database can be faster than, alone.

Enqueue: one INSERT a commit. Bulk: COPY by 10,000 (PostgreSQL), 1,000 rows a commit (SQLite, in duly's journal mode).
Drain: one statement (SQLite: one transaction) that deletes the last 500 and claims the next, then 500 calls.
"""

import sqlite3
import time
from collections.abc import Sequence

import psycopg

from bench.peers.adapter import Adapter, chunks, record, server, url
from duly import App

COPIED, CLAIMED = 10_000, 500
COLUMNS = """
    queue text NOT NULL DEFAULT 'default', task text NOT NULL DEFAULT 'noop', state smallint NOT NULL DEFAULT 0,
    priority smallint NOT NULL DEFAULT 100, attempt smallint NOT NULL DEFAULT 0, number double precision NOT NULL
"""
INDEX = "CREATE INDEX job_ready ON job (queue, priority, id) WHERE state = 0"
INSERT = "INSERT INTO job (number) VALUES (%s)"
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
        self.cursor.execute(INSERT, [number], prepare=True)

    def enqueue_many(self, numbers: Sequence[float]) -> None:
        for chunk in chunks(numbers, COPIED):
            with self.connection.cursor().copy("COPY job (number) FROM STDIN") as copy:
                for number in chunk:
                    copy.write_row([number])

    def unfinished(self) -> int:
        row = self.connection.execute("SELECT count(*) FROM job").fetchone()
        return int(row[0]) if row else 0


def drain_postgres() -> None:
    with psycopg.connect(url(), autocommit=True) as connection, connection.cursor(binary=True) as cursor:
        done: list[int] = []
        while True:
            claimed = cursor.execute(EXCHANGE, [done, CLAIMED], prepare=True).fetchall()
            for _, number in claimed:
                record(number)
            done = [id for id, _ in claimed]
            if not done:
                time.sleep(0.01)


def connect_sqlite() -> sqlite3.Connection:
    path = url().removeprefix("sqlite:///")
    # An App beside it, which knows what journal mode duly takes with this SQLite.
    with App(f"sqlite:///{path}.duly") as jobs:
        journal = jobs.store.inspection.describe()["journal"]
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.execute("PRAGMA synchronous = full")
    return connection


class SQLite(Adapter):
    package = "duly"

    def open(self) -> None:
        self.connection = connect_sqlite()
        self.connection.execute(f"CREATE TABLE job (id integer PRIMARY KEY, {COLUMNS})")
        self.connection.execute(INDEX)
        (journal,) = self.connection.execute("PRAGMA journal_mode").fetchone()
        self.settings = f"SQLite {sqlite3.sqlite_version}, journal {journal}, synchronous=FULL; no queue"

    def enqueue(self, number: float) -> None:
        self.connection.execute("INSERT INTO job (number) VALUES (?)", [number])

    def enqueue_many(self, numbers: Sequence[float]) -> None:
        for chunk in chunks(numbers):
            self.connection.execute("BEGIN IMMEDIATE")
            self.connection.executemany(
                "INSERT INTO job (number) VALUES (?)", ((number,) for number in chunk)
            )
            self.connection.execute("COMMIT")

    def unfinished(self) -> int:
        return int(self.connection.execute("SELECT count(*) FROM job").fetchone()[0])


def drain_sqlite() -> None:
    connection = connect_sqlite()
    done: list[tuple[int]] = []
    while True:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("DELETE FROM job WHERE id = ?", done)
        claimed = connection.execute(CLAIM, [CLAIMED]).fetchall()
        connection.execute("COMMIT")
        for _, number in claimed:
            record(number)
        done = [(id,) for id, _ in claimed]
        if not done:
            time.sleep(0.01)


def work() -> None:
    drain = drain_postgres if server() == "postgres" else drain_sqlite
    drain()


QUEUE = Postgres if server() == "postgres" else SQLite
