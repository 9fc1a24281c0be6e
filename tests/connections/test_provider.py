"""`App(connection=…)`: asked at each enqueue that names no connection itself; and the other calls that take one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy import NullPool
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker, create_async_engine
from sqlalchemy.orm import scoped_session, sessionmaker

from duly import OWN, App, NotFound, State, UsageError


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("server_url" if request.param == "postgres" else "file_url"))


@pytest.fixture
def db(url: str) -> Iterator[scoped_session[Any]]:
    """As a web framework has it: one session per thread."""
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    session = scoped_session(sessionmaker(engine))
    yield session
    session.remove()
    engine.dispose()


def test_an_enqueue_joins_what_the_provider_gives(jobs: App, url: str, db: scoped_session[Any]) -> None:
    app = App(url, connection=lambda: db)

    @app.task
    def send(order: int) -> None: ...

    gone = send.enqueue(1)
    db.rollback()
    kept = send.enqueue(2)
    many = app.enqueue_many([send.draft(3), send.draft(4)])
    db.commit()

    assert (gone.pending, kept.pending, [one.pending for one in many]) == (True, True, [True, True])
    assert [app.inspect.job(one.id).job.state for one in (kept, *many)] == [State.ready] * 3
    app.close()


def test_own_and_a_provider_without_an_answer_mean_a_transaction_of_its_own(
    jobs: App, url: str, db: scoped_session[Any]
) -> None:
    answers: list[Any] = [None]
    app = App(url, connection=lambda: answers[0])

    @app.task
    def send(order: int) -> None: ...

    first = send.enqueue(1)
    answers[0] = db
    second = send.using(connection=OWN).enqueue(2)

    assert (first.pending, second.pending) == (False, False)
    assert app.inspect.job(second.id).job.state is State.ready
    app.close()


def test_a_connection_that_is_said_goes_before_the_provider(
    jobs: App, url: str, db: scoped_session[Any]
) -> None:
    app = App(url, connection=lambda: pytest.fail("the provider was asked"))

    @app.task
    def send(order: int) -> None: ...

    with app.transaction() as connection:
        stored = send.using(connection=connection).enqueue(1)

    assert app.inspect.job(stored.id).job.state is State.ready
    app.close()


@pytest.mark.asyncio
async def test_an_async_enqueue_joins_an_async_session(jobs: App, url: str) -> None:
    import asyncio

    engine = create_async_engine(
        url.replace("postgresql:", "postgresql+asyncpg:").replace("sqlite:", "sqlite+aiosqlite:"),
        poolclass=NullPool,
    )
    sessions: async_scoped_session[AsyncSession] = async_scoped_session(
        async_sessionmaker(engine), scopefunc=asyncio.current_task
    )
    app = App(url, connection=lambda: sessions)

    @app.task
    async def send(order: int) -> None: ...

    gone = await send.aenqueue(1)
    await sessions.rollback()
    kept = await send.aenqueue(2)
    await sessions.commit()

    with pytest.raises(NotFound) if kept.id != gone.id else contextlib.nullcontext():
        await app.inspect.ajob(gone.id)
    assert (await app.inspect.ajob(kept.id)).job.state is State.ready
    await sessions.remove()
    await engine.dispose()
    await app.client.aclose()


def test_what_is_no_function_is_refused(db: scoped_session[Any]) -> None:
    with pytest.raises(UsageError, match=r"App\(connection=lambda: db\.session\)"):
        App("sqlite:///x.db", connection="session")  # type: ignore[arg-type]


def test_a_cancel_and_a_look_belong_to_the_transaction(jobs: App) -> None:
    @jobs.task
    def send(order: int) -> None: ...

    waiting = send.enqueue(1)

    with pytest.raises(ZeroDivisionError), jobs.transaction() as connection:
        new = send.using(connection=connection).enqueue(2)
        act = jobs.operate.cancel([waiting, new], reason="no", connection=connection)
        seen = [jobs.inspect.job(one, connection=connection).job.state for one in (waiting, new)]
        raise ZeroDivisionError

    assert (set(act.moved), seen) == ({waiting.id, new.id}, [State.cancelled] * 2)
    assert jobs.inspect.job(waiting).job.state is State.ready
    with pytest.raises(NotFound):
        jobs.inspect.job(new)


@pytest.mark.asyncio
async def test_an_async_cancel_and_look_belong_to_the_transaction(jobs: App) -> None:
    @jobs.task
    async def send(order: int) -> None: ...

    waiting = await send.aenqueue(1)

    async with jobs.atransaction() as connection:
        await jobs.operate.acancel(waiting, connection=connection)
        seen = (await jobs.inspect.ajob(waiting, connection=connection)).job.state

    assert (seen, (await jobs.inspect.ajob(waiting)).job.state) == (State.cancelled, State.cancelled)


def test_a_bulk_act_does_not_fit_into_a_transaction(jobs: App) -> None:
    from duly import Filter

    with jobs.transaction() as connection:
        with pytest.raises(UsageError, match="leave rate out"):
            jobs.operate.cancel([1], rate="5/s", connection=connection)
        with pytest.raises(UsageError, match="takes job ids"):
            jobs.operate.cancel(Filter(), connection=connection)


def test_once_is_free_again_after_a_rollback(jobs: App, url: str) -> None:
    answers = []
    for fails in (True, False, False):
        with contextlib.suppress(ZeroDivisionError), jobs.transaction() as connection:
            answers.append(jobs.once(f"event {url}", connection=connection))
            if fails:
                raise ZeroDivisionError

    assert answers == [True, True, False]


def test_a_connection_opened_before_duly_was_loaded_will_do(server_url: str) -> None:
    import subprocess
    import sys

    program = f"""
import psycopg
with psycopg.connect({server_url!r}) as connection:
    from duly import App
    jobs = App({server_url!r})
    @jobs.task
    def send(order: int) -> None: ...
    print(send.using(connection=connection).enqueue(1).pending)
jobs.close()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50)

    assert (done.stdout.strip(), done.stderr) == ("True", "")


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_a_restart_of_the_server_between_app_and_connection_is_no_other_database(
    jobs: App, url: str, postgres15: Any
) -> None:
    @jobs.task
    def send(order: int) -> None: ...

    with psycopg.connect(url) as connection:
        send.using(connection=connection).enqueue(1)

    postgres15.restart()

    with psycopg.connect(url) as connection:
        assert send.using(connection=connection).enqueue(2).pending
