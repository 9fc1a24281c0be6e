"""One class per kind of connection, driven alike from blocking code: begin, write, commit, roll back, close.

Knows nothing of duly but how a connection is handed to it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import aiosqlite
import asyncpg
import psycopg
import sqlalchemy
from sqlalchemy import NullPool
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

T = TypeVar("T")


class Caller:
    """A connection and what its user does with it. `autocommit` is how it is opened."""

    is_async = False
    """Whether it goes into the calls with an a."""
    begins_by_itself = True
    """Whether a statement opens a transaction without `begin`, unless it autocommits."""
    connection: Any

    def __init__(self, url: str, *, autocommit: bool = False) -> None:
        self.url = url
        self.autocommit = autocommit

    def begin(self) -> None:
        """Open a transaction."""

    def execute(self, text: str) -> Any:
        """Run a statement; the first row."""
        raise NotImplementedError

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()

    def back_to_savepoint(self, act: Callable[[], T]) -> T:
        """Do something inside a savepoint, and roll back to it."""
        self.execute("savepoint mine")
        done = act()
        self.execute("rollback to savepoint mine")
        return done

    def close(self) -> None:
        """Make it useless."""
        self.connection.close()

    def dispose(self) -> None:
        """Let go of everything, also after `close`."""
        self.connection.close()

    def hand_in(self, blocking: Callable[[Any], T], turning: Callable[[Any], Awaitable[T]]) -> T:
        """Call whichever fits this kind, with the connection."""
        return blocking(self.connection)


class AsyncCaller(Caller):
    """On an event loop of its own, which runs while something is done."""

    is_async = True

    def __init__(self, url: str, *, autocommit: bool = False) -> None:
        super().__init__(url, autocommit=autocommit)
        self.runner = asyncio.Runner()
        self.wait(self.open())

    async def open(self) -> None:
        raise NotImplementedError

    def wait(self, work: Awaitable[T]) -> T:
        async def done() -> T:
            return await work

        return self.runner.run(done())

    def commit(self) -> None:
        self.wait(self.connection.commit())

    def rollback(self) -> None:
        self.wait(self.connection.rollback())

    def close(self) -> None:
        self.wait(self.connection.close())

    def dispose(self) -> None:
        self.close()
        self.runner.close()

    def hand_in(self, blocking: Callable[[Any], T], turning: Callable[[Any], Awaitable[T]]) -> T:
        return self.wait(turning(self.connection))


class Psycopg(Caller):
    def __init__(self, url: str, *, autocommit: bool = False) -> None:
        super().__init__(url, autocommit=autocommit)
        self.connection = psycopg.connect(url, autocommit=autocommit)

    def execute(self, text: str) -> Any:
        cursor = self.connection.execute(text)
        return cursor.fetchone() if cursor.description else None


class PsycopgAsync(AsyncCaller):
    async def open(self) -> None:
        self.connection = await psycopg.AsyncConnection.connect(self.url, autocommit=self.autocommit)

    def execute(self, text: str) -> Any:
        async def run() -> Any:
            cursor = await self.connection.execute(text)
            return await cursor.fetchone() if cursor.description else None

        return self.wait(run())


class Asyncpg(AsyncCaller):
    begins_by_itself = False

    async def open(self) -> None:
        self.connection = await asyncpg.connect(self.url)
        self.autocommit = True

    def begin(self) -> None:
        self.transaction = self.connection.transaction()
        self.wait(self.transaction.start())

    def execute(self, text: str) -> Any:
        return self.wait(self.connection.fetchrow(text))

    def commit(self) -> None:
        self.wait(self.transaction.commit())

    def rollback(self) -> None:
        self.wait(self.transaction.rollback())


class AsyncpgPool(Asyncpg):
    async def open(self) -> None:
        self.pool = await asyncpg.create_pool(self.url, min_size=1, max_size=1)
        self.connection = await self.pool.acquire()

    def close(self) -> None:
        self.wait(self.pool.release(self.connection))

    def dispose(self) -> None:
        self.close()
        self.wait(self.pool.close())
        self.runner.close()


class SQLAlchemyConnection(Caller):
    def __init__(self, url: str, *, autocommit: bool = False) -> None:
        super().__init__(url, autocommit=autocommit)
        level = {"isolation_level": "AUTOCOMMIT"} if autocommit else {}
        self.engine = sqlalchemy.create_engine(
            _with_driver(url, "psycopg", None), poolclass=NullPool, **level
        )
        self.connection = self.opened()

    def opened(self) -> Any:
        return self.engine.connect()

    def execute(self, text: str) -> Any:
        found = self.connection.execute(sqlalchemy.text(text))
        return found.fetchone() if found.returns_rows else None

    def dispose(self) -> None:
        self.close()
        self.engine.dispose()


class SQLAlchemySession(SQLAlchemyConnection):
    def opened(self) -> Any:
        return Session(self.engine, close_resets_only=False)


class SQLAlchemyScopedSession(SQLAlchemyConnection):
    def opened(self) -> Any:
        return scoped_session(sessionmaker(self.engine, close_resets_only=False))


class SQLAlchemyAsyncConnection(AsyncCaller):
    async def open(self) -> None:
        level = {"isolation_level": "AUTOCOMMIT"} if self.autocommit else {}
        url = _with_driver(self.url, "asyncpg", "aiosqlite")
        self.engine = create_async_engine(url, poolclass=NullPool, **level)
        self.connection = await self.engine.connect()

    def execute(self, text: str) -> Any:
        async def run() -> Any:
            found = await self.connection.execute(sqlalchemy.text(text))
            return found.fetchone() if found.returns_rows else None

        return self.wait(run())

    def dispose(self) -> None:
        self.close()
        self.wait(self.engine.dispose())
        self.runner.close()


class SQLAlchemyAsyncSession(SQLAlchemyAsyncConnection):
    driver = "asyncpg"

    async def open(self) -> None:
        level = {"isolation_level": "AUTOCOMMIT"} if self.autocommit else {}
        url = _with_driver(self.url, self.driver, "aiosqlite")
        self.engine = create_async_engine(url, poolclass=NullPool, **level)
        self.connection = AsyncSession(self.engine, close_resets_only=False)


class SQLAlchemyAsyncSessionOverPsycopg(SQLAlchemyAsyncSession):
    driver = "psycopg"


class SQLite3(Caller):
    def __init__(self, url: str, *, autocommit: bool = False) -> None:
        super().__init__(url, autocommit=autocommit)
        path = url.removeprefix("sqlite:///")
        self.connection = sqlite3.connect(path, isolation_level=None if autocommit else "DEFERRED")

    def begin(self) -> None:
        self.connection.execute("begin immediate")

    def execute(self, text: str) -> Any:
        return self.connection.execute(text).fetchone()


class Aiosqlite(AsyncCaller):
    async def open(self) -> None:
        path = self.url.removeprefix("sqlite:///")
        self.connection = await aiosqlite.connect(
            path, isolation_level=None if self.autocommit else "DEFERRED"
        )

    def begin(self) -> None:
        self.execute("begin immediate")

    def execute(self, text: str) -> Any:
        async def run() -> Any:
            async with self.connection.execute(text) as cursor:
                return await cursor.fetchone()

        return self.wait(run())


class Django(Caller):
    begins_by_itself = False

    def __init__(self, url: str, *, autocommit: bool = False) -> None:
        from tests.connections import django_setup

        super().__init__(url, autocommit=True)
        self.alias = django_setup.add(url)
        self.connection = django_setup.connections[self.alias]

    def begin(self) -> None:
        from django.db import transaction

        self.atomic = transaction.atomic(using=self.alias)
        self.atomic.__enter__()

    def execute(self, text: str) -> Any:
        with self.connection.cursor() as cursor:
            cursor.execute(text)
            return cursor.fetchone() if cursor.description else None

    def commit(self) -> None:
        self.atomic.__exit__(None, None, None)

    def rollback(self) -> None:
        self.connection.set_rollback(True)
        self.atomic.__exit__(None, None, None)

    def dispose(self) -> None:
        from tests.connections import django_setup

        django_setup.remove(self.alias)


def _with_driver(url: str, server: str, file: str | None) -> str:
    if url.startswith("sqlite"):
        return url if file is None else url.replace("sqlite:", f"sqlite+{file}:", 1)
    return url.replace("postgresql:", f"postgresql+{server}:", 1)


SERVER_KINDS: dict[str, type[Caller]] = {
    "psycopg": Psycopg,
    "psycopg-async": PsycopgAsync,
    "asyncpg": Asyncpg,
    "asyncpg-pool": AsyncpgPool,
    "sqlalchemy-connection": SQLAlchemyConnection,
    "sqlalchemy-session": SQLAlchemySession,
    "sqlalchemy-scoped-session": SQLAlchemyScopedSession,
    "sqlalchemy-async-connection": SQLAlchemyAsyncConnection,
    "sqlalchemy-async-session": SQLAlchemyAsyncSession,
    "sqlalchemy-async-session-psycopg": SQLAlchemyAsyncSessionOverPsycopg,
    "django": Django,
}
FILE_KINDS: dict[str, type[Caller]] = {
    "sqlite3": SQLite3,
    "aiosqlite": Aiosqlite,
    "sqlalchemy-connection": SQLAlchemyConnection,
    "sqlalchemy-session": SQLAlchemySession,
    "sqlalchemy-scoped-session": SQLAlchemyScopedSession,
    "sqlalchemy-async-connection": SQLAlchemyAsyncConnection,
    "sqlalchemy-async-session": SQLAlchemyAsyncSession,
    "django": Django,
}
