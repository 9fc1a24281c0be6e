"""Enqueueing in the caller's transaction: rolled back means never existed, committed means it will run."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duly import App, ConnectionMismatch, State


def ready(jobs: App) -> int:
    return jobs.inspect.queue("default").counts.ready


@pytest.fixture
def send(both: App) -> Any:
    @both.task
    def send(order_id: int) -> None: ...

    return send


def test_an_own_transaction_commits_at_its_end(both: App, send: Any) -> None:
    with both.transaction() as connection:
        send.using(connection=connection).enqueue(1)
        both.enqueue_many([send.draft(2), send.draft(3)], connection=connection)

    assert ready(both) == 3


def test_an_own_transaction_that_raises_stores_nothing(both: App, send: Any) -> None:
    with pytest.raises(ZeroDivisionError), both.transaction() as connection:
        send.using(connection=connection).enqueue(1)
        raise ZeroDivisionError

    assert ready(both) == 0


@pytest.mark.asyncio
async def test_an_own_async_transaction_commits_and_rolls_back(both: App, send: Any) -> None:
    async with both.atransaction() as connection:
        await send.using(connection=connection).aenqueue(1)
        await both.aenqueue_many([send.draft(2)], connection=connection)
    with pytest.raises(ZeroDivisionError):
        async with both.atransaction() as connection:
            await send.using(connection=connection).aenqueue(3)
            raise ZeroDivisionError

    assert (await both.inspect.aqueue("default")).counts.ready == 2


def test_sqlite_rows_and_jobs_commit_together(jobs: App, sqlite_path: Path) -> None:
    @jobs.task
    def send(order_id: int) -> None: ...

    jobs.inspect.status()
    connection = sqlite3.connect(sqlite_path, isolation_level=None)
    connection.execute("CREATE TABLE orders (id INTEGER)")

    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO orders VALUES (1)")
    first = send.using(connection=connection).enqueue(1)
    connection.execute("ROLLBACK")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO orders VALUES (2)")
    second = send.using(connection=connection).enqueue(2)
    connection.execute("COMMIT")

    records = jobs.store.inspection.lookup([first.id, second.id])
    assert connection.execute("SELECT id FROM orders").fetchall() == [(2,)]
    # The rolled-back number may be given out again; then it is the second job's.
    assert {record.id for record in records if record is not None} == {second.id}
    connection.close()


def test_postgres_rows_and_jobs_commit_together(server_jobs: App, postgres_url: str) -> None:
    @server_jobs.task
    def send(order_id: int) -> None: ...

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id int)")
        with pytest.raises(ZeroDivisionError), connection.transaction():
            connection.execute("INSERT INTO orders VALUES (1)")
            send.using(connection=connection).enqueue(1)
            raise ZeroDivisionError
        with connection.transaction():
            connection.execute("INSERT INTO orders VALUES (2)")
            kept = send.using(connection=connection).enqueue(2)
        rows = connection.execute("SELECT id FROM orders").fetchall()

    record = server_jobs.store.inspection.lookup([kept.id])[0]
    assert rows == [(2,)]
    assert record is not None
    assert record.state is State.ready
    assert ready(server_jobs) == 1


@pytest.mark.asyncio
async def test_postgres_async_connections_are_taken_by_the_async_twin(
    server_jobs: App, postgres_url: str
) -> None:
    @server_jobs.task
    async def send(order_id: int) -> None: ...

    async with await psycopg.AsyncConnection.connect(postgres_url) as connection:
        await send.using(connection=connection).aenqueue(1)
        before = (await server_jobs.inspect.aqueue("default")).counts.ready
        await connection.commit()

    assert (before, (await server_jobs.inspect.aqueue("default")).counts.ready) == (0, 1)


@pytest.mark.asyncio
@pytest.mark.filterwarnings("ignore::duly.BlockingCallWarning")
async def test_an_async_connection_needs_the_async_twin(server_jobs: App, postgres_url: str) -> None:
    @server_jobs.task
    async def send(order_id: int) -> None: ...

    async with await psycopg.AsyncConnection.connect(postgres_url) as connection:
        with pytest.raises(ConnectionMismatch, match="aenqueue"):
            send.using(connection=connection).enqueue(1)


def test_a_connection_to_another_database_is_refused(jobs: App, tmp_path: Path) -> None:
    @jobs.task
    def send(order_id: int) -> None: ...

    jobs.inspect.status()
    other = sqlite3.connect(tmp_path / "other.db", isolation_level=None)
    other.execute("BEGIN")

    for connection in (other, object()):
        with pytest.raises(ConnectionMismatch):
            send.using(connection=connection).enqueue(1)

    other.close()
    assert ready(jobs) == 0


def test_a_refused_argument_leaves_the_callers_transaction_usable(jobs: App, sqlite_path: Path) -> None:
    @jobs.task
    def send(order_id: float) -> None: ...

    jobs.inspect.status()
    connection = sqlite3.connect(sqlite_path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")

    with pytest.raises(ValueError, match="order_id"):
        send.using(connection=connection).enqueue(float("nan"))
    send.using(connection=connection).enqueue(1.5)
    connection.execute("COMMIT")

    connection.close()
    assert ready(jobs) == 1
