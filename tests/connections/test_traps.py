"""What would have slipped out of the caller's transaction, or into a wrong one, and does not."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy import NullPool, event, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

from duly import App, ConnectionMismatch, PayloadError, State
from tests.connections.callers import Django
from tests.connections.test_kinds import state


class Base(DeclarativeBase): ...


class Order(Base):
    __tablename__ = "orders_of_flush"
    id: Mapped[int] = mapped_column(primary_key=True)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("server_url" if request.param == "postgres" else "file_url"))


@pytest.fixture
def send(jobs: App) -> Any:
    @jobs.task
    def send(order: int) -> None: ...

    return send


def server(url: str, driver: str) -> str:
    return url.replace("postgresql:", f"postgresql+{driver}:")


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
class TestOnPostgres:
    @pytest.mark.asyncio
    async def test_a_session_that_has_not_begun_carries_its_first_statement_too(
        self, jobs: App, url: str, send: Any
    ) -> None:
        engine = create_async_engine(server(url, "asyncpg"), poolclass=NullPool)
        async with AsyncSession(engine) as session:
            gone = await send.using(connection=session).aenqueue(1)
            await session.rollback()

        assert state(jobs, gone.id) is None
        await engine.dispose()

    @pytest.mark.asyncio
    async def test_sqlalchemys_raw_asyncpg_connection_is_refused_before_it_has_begun(
        self, jobs: App, url: str, send: Any
    ) -> None:
        engine = create_async_engine(server(url, "asyncpg"), poolclass=NullPool)
        async with engine.connect() as connection:
            raw = (await connection.get_raw_connection()).driver_connection
            with pytest.raises(ConnectionMismatch, match="belongs to SQLAlchemy"):
                await send.using(connection=raw).aenqueue(1)
            await connection.execute(text("select 1"))
            gone = await send.using(connection=raw).aenqueue(2)
            await connection.rollback()

        assert (gone.pending, state(jobs, gone.id)) == (True, None)
        await engine.dispose()

    @pytest.mark.asyncio
    async def test_every_type_of_argument_reaches_the_server_exactly(
        self, jobs: App, url: str, send: Any
    ) -> None:
        said = {
            "delay": "36h",
            "expires": "2d",
            "timeout": "90s",
            "attempts": 3,
            "priority": -5,
            "tenant": 'a"\\,{}',
        }
        by_driver = await asyncpg.connect(url)
        psycopgs = await psycopg.AsyncConnection.connect(url)
        async with by_driver.transaction():
            first = await send.using(connection=by_driver, tags=["ä", "b c"], **said).aenqueue(1)
        second = await send.using(connection=psycopgs, tags=["ä", "b c"], **said).aenqueue(1)
        await psycopgs.commit()
        await by_driver.close()
        await psycopgs.close()

        one, other = jobs.store.inspection.lookup([first.id, second.id])
        assert one is not None
        assert other is not None
        for name in ("args", "timeout", "attempts", "priority", "tenant", "tags", "state"):
            assert getattr(one, name) == getattr(other, name)

    def test_the_servers_refusal_of_a_value_is_a_payload_error_for_every_driver(
        self, jobs: App, url: str, send: Any
    ) -> None:
        engine = sqlalchemy.create_engine(server(url, "psycopg"), poolclass=NullPool)
        with Session(engine) as session, pytest.raises(PayloadError):
            send.using(connection=session, correlation_id="x" * 150, tags=["y"]).enqueue("\ud800")
        engine.dispose()

    def test_an_engine_is_asked_once_which_database_it_leads_to(self, url: str, jobs: App, send: Any) -> None:
        engine = sqlalchemy.create_engine(server(url, "psycopg"))
        asked: list[str] = []
        event.listen(engine, "before_cursor_execute", lambda *call: asked.append(call[2]))
        for number in range(3):
            with Session(engine) as session, session.begin():
                send.using(connection=session).enqueue(number)

        assert sum("pg_postmaster_start_time" in statement for statement in asked) == 1
        engine.dispose()

    def test_read_committed_is_not_asked_of_the_caller(self, url: str, jobs: App, send: Any) -> None:
        engine = sqlalchemy.create_engine(
            server(url, "psycopg"), poolclass=NullPool, isolation_level="SERIALIZABLE"
        )
        with Session(engine) as session, session.begin():
            stored = send.using(connection=session).enqueue(1)

        assert state(jobs, stored.id) is State.ready
        engine.dispose()


def test_a_session_after_a_failed_flush_is_said_to_have_failed(url: str, jobs: App, send: Any) -> None:
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add(Order(id=1))
        session.commit()
    with Session(engine) as session:
        session.add(Order(id=1))
        with pytest.raises(sqlalchemy.exc.IntegrityError):
            session.flush()

        with pytest.raises(ConnectionMismatch, match="failed already"):
            send.using(connection=session).enqueue(1)

    engine.dispose()


def test_what_is_nearly_a_connection_is_refused_with_what_to_write(url: str, jobs: App, send: Any) -> None:
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    for thing, remedy in (
        (engine, "with engine.begin() as connection"),
        (sessionmaker(engine), "with sessions.begin() as session"),
        (object(), "connection= takes"),
        ("postgresql://", "connection= takes"),
    ):
        with pytest.raises(ConnectionMismatch) as told:
            send.using(connection=thing).enqueue(1)
        assert remedy in str(told.value)
    engine.dispose()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_sqlalchemys_own_begin_recipe_for_sqlite_works(url: str, jobs: App, send: Any) -> None:
    engine = sqlalchemy.create_engine(url, poolclass=NullPool)

    @event.listens_for(engine, "connect")
    def hand_over(raw: Any, record: object) -> None:
        raw.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    with Session(engine) as session:
        gone = send.using(connection=session).enqueue(1)
        session.rollback()
        after = state(jobs, gone.id)
        kept = send.using(connection=session).enqueue(2)
        session.commit()

    assert (gone.pending, after, state(jobs, kept.id)) == (True, None, State.ready)
    engine.dispose()


@pytest.mark.parametrize("url", ["postgres", "sqlite"], indirect=True)
def test_async_code_reaches_djangos_connection_by_its_proxy(url: str, jobs: App, send: Any) -> None:
    from asgiref.sync import sync_to_async
    from django.db import transaction
    from django.utils.connection import ConnectionProxy

    from tests.connections import django_setup

    alias = django_setup.add(url)
    proxy = ConnectionProxy(django_setup.connections, alias)

    async def act() -> tuple[Any, Any]:
        atomic = transaction.atomic(using=alias)
        await sync_to_async(atomic.__enter__)()
        gone = await send.using(connection=proxy).aenqueue(1)
        await sync_to_async(transaction.set_rollback)(True, using=alias)
        await sync_to_async(atomic.__exit__)(None, None, None)
        after = state(jobs, gone.id)
        stored = await send.using(connection=proxy).aenqueue(2)
        await sync_to_async(django_setup.connections.close_all)()
        return (gone.pending, after), stored.pending

    assert asyncio.run(act()) == ((True, None), False)
    del django_setup.connections.settings[alias]


def test_a_django_connection_of_another_thread_is_refused(url: str, jobs: App, send: Any) -> None:
    caller = Django(url)

    with pytest.raises(ConnectionMismatch, match="another thread"):
        asyncio.run(send.using(connection=caller.connection).aenqueue(1))

    caller.dispose()


def test_no_library_is_loaded_that_the_program_has_not(url: str) -> None:
    program = f"""
import sys
from duly import App
jobs = App({url!r})
@jobs.task
def send(order: int) -> None: ...
with jobs.transaction() as connection:
    send.using(connection=connection).enqueue(1)
send.enqueue(2)
jobs.close()
print(sorted({{"sqlalchemy", "asyncpg", "aiosqlite", "django", "greenlet"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50)

    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_sqlalchemy_without_greenlet_will_do(url: str) -> None:
    program = f"""
import sys
sys.modules["greenlet"] = None
import sqlalchemy
from sqlalchemy.orm import Session
from duly import App
jobs = App({url!r})
@jobs.task
def send(order: int) -> None: ...
send.enqueue(0)
engine = sqlalchemy.create_engine({url.replace("postgresql:", "postgresql+psycopg:")!r})
with Session(engine) as session, session.begin():
    print(send.using(connection=session).enqueue(1).pending)
jobs.close()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50)

    assert (done.stdout.strip(), done.stderr) == ("True", "")


def test_a_dialect_that_cannot_carry_jobs_is_named(
    url: str, jobs: App, send: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    # A driver that is not installed here, on a connection that is real otherwise.
    monkeypatch.setattr(engine.dialect, "driver", "pg8000")
    with (
        engine.connect() as connection,
        pytest.raises(ConnectionMismatch, match=r"\+pg8000.*postgresql\+psycopg"),
    ):
        send.using(connection=connection).enqueue(1)
    engine.dispose()
