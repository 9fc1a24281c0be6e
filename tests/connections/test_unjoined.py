"""An enqueue beside the open transaction of the same thread or task: an error on SQLite, a warning on PostgreSQL."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiosqlite
import psycopg
import pytest
import sqlalchemy
from sqlalchemy import NullPool, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

from duly import OWN, App, TransactionNotJoined, UsageError
from duly.client import provider
from tests.connections.callers import Django


@pytest.fixture(autouse=True)
def no_line_told_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "_told", set())


ON_SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
ON_POSTGRES = pytest.mark.parametrize("url", ["postgres"], indirect=True)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("server_url" if request.param == "postgres" else "file_url"))


@pytest.fixture
def send(jobs: App) -> Any:
    @jobs.task
    def send(order: int) -> None: ...

    return send


@pytest.fixture
def session(jobs: App, url: str) -> Iterator[Session]:
    """With a transaction open that has written."""
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    with Session(engine) as session:
        session.execute(text("insert into orders values (0)"))
        yield session
    engine.dispose()


def refused(url: str, line: str) -> Any:
    """What an enqueue here is told, naming the line."""
    if url.startswith("sqlite"):
        return pytest.raises(UsageError, match=rf"pass connection=.*{line}")
    return pytest.warns(TransactionNotJoined, match=rf"Pass connection=.*{line}")


def test_a_session_that_was_not_passed_is_told_with_the_line(url: str, send: Any, session: Session) -> None:
    with refused(url, r"test_unjoined\.py:\d+"):
        send.enqueue(1)


@ON_POSTGRES
def test_a_line_is_warned_of_once(session: Session, send: Any) -> None:
    with pytest.warns(TransactionNotJoined) as told:
        for number in range(3):
            send.enqueue(number)

    assert len(told) == 1


def test_after_the_commit_nothing_is_told(send: Any, session: Session) -> None:
    session.commit()

    assert not send.enqueue(1).pending


def test_passing_the_session_is_the_remedy(send: Any, session: Session) -> None:
    assert send.using(connection=session).enqueue(1).pending


def test_own_is_no_mistake_where_two_can_write(url: str, send: Any, session: Session) -> None:
    if url.startswith("sqlite"):
        with pytest.raises(UsageError, match="would wait for it"):
            send.using(connection=OWN).enqueue(1)
    else:
        assert not send.using(connection=OWN).enqueue(1).pending


@ON_SQLITE
def test_a_session_that_only_read_holds_up_nobody(url: str, jobs: App, send: Any) -> None:
    engine = sqlalchemy.create_engine(url, poolclass=NullPool)
    with Session(engine) as session:
        session.execute(text("select * from orders")).fetchall()

        assert not send.enqueue(1).pending

    engine.dispose()


def test_a_transaction_on_another_database_does_not_matter(
    url: str, send: Any, tmp_path: Path, server_url: str
) -> None:
    other = f"sqlite:///{tmp_path}/other.db"
    if url.startswith("postgres"):
        other = server_url.rpartition("/")[0].replace("postgresql:", "postgresql+psycopg:") + "/postgres"
    engine = sqlalchemy.create_engine(other, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("create temporary table mine (n int)"))

        assert not send.enqueue(1).pending

    engine.dispose()


@ON_POSTGRES
def test_another_threads_transaction_does_not_matter(url: str, send: Any, session: Session) -> None:
    stored: list[Any] = []

    thread = threading.Thread(target=lambda: stored.append(send.enqueue(1)))
    thread.start()
    thread.join()

    assert [one.pending for one in stored] == [False]


def test_djangos_atomic_is_seen(url: str, send: Any) -> None:
    caller = Django(url)
    send.enqueue(0)
    caller.begin()
    caller.execute("insert into orders values (0)")

    with refused(url, r"test_unjoined\.py:\d+"):
        send.enqueue(1)

    caller.rollback()
    assert not send.enqueue(2).pending
    caller.dispose()


@ON_POSTGRES
def test_a_connection_that_was_passed_once_is_remembered(url: str, send: Any) -> None:
    with psycopg.connect(url) as connection:
        send.using(connection=connection).enqueue(1)

        with pytest.warns(TransactionNotJoined, match=r"psycopg\.Connection"):
            send.enqueue(2)

        connection.commit()
        send.enqueue(3)


@pytest.mark.asyncio
async def test_a_tasks_own_async_session_is_seen_and_anothers_is_not(url: str, send: Any) -> None:
    engine = create_async_engine(
        url.replace("postgresql:", "postgresql+asyncpg:").replace("sqlite:", "sqlite+aiosqlite:"),
        poolclass=NullPool,
    )
    await send.aenqueue(0)
    async with engine.connect() as connection:
        await connection.execute(text("insert into orders values (0)"))
        with refused(url, r"test_unjoined\.py:\d+"):
            await send.aenqueue(1)
        if url.startswith("postgres"):
            assert not (await asyncio.ensure_future(send.aenqueue(2))).pending
    await engine.dispose()


@ON_SQLITE
@pytest.mark.asyncio
async def test_an_aiosqlite_connection_that_was_passed_once_is_remembered(
    url: str, send: Any, sqlite_path: Path
) -> None:
    async with aiosqlite.connect(sqlite_path) as connection:
        await send.using(connection=connection).aenqueue(1)

        with pytest.raises(UsageError, match="aiosqlite"):
            await send.aenqueue(2)

        await connection.rollback()
        await send.aenqueue(3)


@ON_POSTGRES
def test_the_warning_can_be_made_an_error(url: str, send: Any, session: Session) -> None:
    with warnings.catch_warnings(), pytest.raises(TransactionNotJoined):
        warnings.simplefilter("error", TransactionNotJoined)
        send.enqueue(1)


def test_a_transaction_of_the_apps_own_is_seen(url: str, jobs: App, send: Any) -> None:
    expected = (
        pytest.raises(UsageError, match="pass connection=") if url.startswith("sqlite") else refused(url, "")
    )

    with jobs.transaction() as connection:
        send.using(connection=connection).enqueue(1)
        with expected:
            send.enqueue(2)

    assert not send.enqueue(3).pending


@pytest.mark.asyncio
async def test_an_async_transaction_of_the_apps_own_is_seen(url: str, jobs: App, send: Any) -> None:
    async with jobs.atransaction():
        with (
            refused(url, r"test_unjoined\.py:\d+")
            if url.startswith("postgres")
            else pytest.raises(UsageError)
        ):
            await send.aenqueue(2)


@ON_SQLITE
def test_a_pooled_connection_that_another_thread_has_by_now_is_not_mine(
    url: str, jobs: App, send: Any
) -> None:
    engine = sqlalchemy.create_engine(url, pool_size=1, max_overflow=0)
    mine, done = threading.Event(), threading.Event()
    with Session(engine) as session, session.begin():
        send.using(connection=session).enqueue(1)

    def other() -> None:
        with Session(engine) as session:
            session.execute(text("insert into orders values (0)"))
            mine.set()
            done.wait(30)

    thread = threading.Thread(target=other)
    thread.start()
    assert mine.wait(30)
    read = jobs.store.inspection.counts()
    try:
        # Refused at once, if it were taken for this thread's own; else it waits its turn.
        threading.Timer(0.5, done.set).start()
        stored = send.using(connection=OWN).enqueue(2)
    finally:
        done.set()
        thread.join()

    assert read
    assert not stored.pending
    engine.dispose()


@ON_SQLITE
def test_every_write_beside_an_own_session_is_refused_at_once(jobs: App, send: Any, session: Session) -> None:
    with pytest.raises(UsageError, match=r"would wait for it.*test_unjoined\.py:\d+"):
        jobs.operate.pause("default")
