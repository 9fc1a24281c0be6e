"""Stores on a fresh file, processes of their own, and short verbs for them."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from duly.core.job import ClaimedJob, ClaimRequest, Incarnation, JobId, NewJob, QueueClaim, WorkerInfo
from duly.stores.protocol import Store
from duly.stores.sqlite.connecting import Journal
from duly.stores.sqlite.store import SQLiteStore

Open = Callable[..., SQLiteStore]
Connect = Callable[..., sqlite3.Connection]
Start = Callable[..., "subprocess.Popen[str]"]

ROOT = Path(__file__).parents[3]


@pytest.fixture
def open_store(sqlite_path: Path) -> Iterator[Open]:
    """Opens stores on this test's file and closes them."""
    with ExitStack() as stack:

        def opened(
            journal: Journal | None = None, *, busy_timeout: float = 10.0, schema: str = "duly"
        ) -> SQLiteStore:
            store = SQLiteStore(sqlite_path, journal=journal, busy_timeout=busy_timeout, schema=schema)
            stack.callback(store.close)
            return store

        yield opened


@pytest.fixture
def store(open_store: Open) -> SQLiteStore:
    """A store in the rollback journal, with its tables."""
    made = open_store("truncate")
    made.schema.migrate()
    return made


@pytest.fixture
def connect(sqlite_path: Path) -> Iterator[Connect]:
    """Opens users' connections to this test's file and closes them."""
    with ExitStack() as stack:

        def opened(**options: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = sqlite3.connect(sqlite_path, **options)
            return stack.enter_context(closing(connection))

        yield opened


@pytest.fixture
def start(sqlite_path: Path) -> Iterator[Start]:
    """Starts scenes of tests.stores.sqlite.processes and ends those that still run."""
    started: list[subprocess.Popen[str]] = []

    def run(scene: str, journal: Journal, *words: str) -> "subprocess.Popen[str]":
        command = [
            sys.executable,
            "-m",
            "tests.stores.sqlite.processes",
            scene,
            str(sqlite_path),
            journal,
            *words,
        ]
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        # With the children that it forked.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def job(task: str = "ok", queue: str = "default") -> NewJob:
    return NewJob(queue, task, b"{}")


def put(store: Store, count: int = 1) -> list[JobId]:
    return [stored.id for stored in store.jobs.enqueue([job()] * count)]


def worker(store: Store, *tasks: str) -> Incarnation:
    return store.leases.register(
        WorkerInfo(
            host="host",
            pid=1,
            supervisor="host:1",
            queues=("default",),
            tasks=dict.fromkeys(tasks or ("ok",), timedelta(minutes=5)),
            lease=timedelta(seconds=30),
            heartbeat=timedelta(seconds=5),
            slots=4,
            version="1",
        )
    )


def claim(store: Store, incarnation: Incarnation, most: int = 1) -> tuple[ClaimedJob, ...]:
    request = ClaimRequest((QueueClaim("default", most),), most)
    return store.jobs.exchange(incarnation, [], request).claimed


def exists(store: Store, ids: list[JobId]) -> list[bool]:
    return [record is not None for record in store.inspection.lookup(ids)]


def log_statements(monkeypatch: pytest.MonkeyPatch, ran: list[str]) -> None:
    """Let every connection that is opened from now on note what it runs."""
    really = sqlite3.connect

    def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = really(*arguments, **options)
        connection.set_trace_callback(ran.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect)
