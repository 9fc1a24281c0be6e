"""A caller's SQLAlchemy connections and sessions, sync and async, over psycopg, asyncpg, pysqlite and aiosqlite.

Statements go through SQLAlchemy's own connection: beside it, a driver that has not begun yet would commit them at once.
"""

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar

from sqlalchemy import util
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import InvalidRequestError, PendingRollbackError
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from duly.core.errors import ConnectionMismatch
from duly.stores.connections import kinds
from duly.stores.connections.asyncpg_text import positional, values
from duly.stores.connections.kinds import Answer, Parameters
from duly.stores.connections.sqlalchemy_begun import in_transaction

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session

T = TypeVar("T")

_SERVER: Final = frozenset({"psycopg", "psycopg_async", "asyncpg"})
_FILE: Final = frozenset({"pysqlite", "aiosqlite"})


class _Blocking:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def remembered_by(self) -> object:
        return self._connection.engine.pool

    def run(self, text: bytes, parameters: Parameters) -> Answer:
        connection = self._connection
        with _refused(connection):
            if connection.dialect.driver == "asyncpg":
                statement, names = positional(text)
                found = connection.exec_driver_sql(statement, values(names, parameters))
            else:
                found = connection.exec_driver_sql(text.decode(), dict(parameters))
            return Answer([tuple(row) for row in found], in_transaction(connection))


class _Async:
    def __init__(self, connection: "AsyncConnection") -> None:
        self._connection = connection

    @property
    def remembered_by(self) -> object:
        return self._connection.sync_engine.pool

    async def run(self, text: bytes, parameters: Parameters) -> Answer:
        return await self._connection.run_sync(lambda connection: _Blocking(connection).run(text, parameters))


class SQLAlchemy:
    """See `Kind`."""

    def on_server(self, connection: object) -> _Blocking:
        joined = _blocking(connection)
        _check_driver(joined, _SERVER)
        return _Blocking(joined)

    async def aon_server(self, connection: object) -> _Async:
        joined = await _async(connection)
        _check_driver(joined, _SERVER)
        return _Async(joined)

    def on_file(self, connection: object, act: Callable[[sqlite3.Connection], T]) -> T:
        joined = _blocking(connection)
        _check_driver(joined, _FILE)
        return _acted(joined, act)

    async def aon_file(self, connection: object, act: Callable[[sqlite3.Connection], T]) -> T:
        joined = await _async(connection)
        _check_driver(joined, _FILE)
        return await joined.run_sync(_acted, act)


KIND = SQLAlchemy()


def _blocking(connection: object) -> Connection:
    if isinstance(connection, scoped_session):
        connection = connection()
    if _is_async(connection):
        raise kinds.async_in_blocking(connection)
    if not isinstance(connection, Connection | Session):
        raise _no_connection(connection)
    with _refused(connection):
        joined = connection.connection() if isinstance(connection, Session) else connection
    if joined.closed:
        raise kinds.closed(joined)
    return joined


async def _async(connection: object) -> "AsyncConnection":
    if isinstance(connection, scoped_session):
        connection = connection()
    if isinstance(connection, Connection | Session):
        raise kinds.blocking_in_async(connection, "an AsyncConnection or AsyncSession")
    if not _is_async(connection):
        raise _no_connection(connection)
    from sqlalchemy.ext.asyncio import AsyncConnection, async_scoped_session

    with _refused(connection):
        if isinstance(connection, AsyncConnection):
            joined = connection
        else:
            session = connection() if isinstance(connection, async_scoped_session) else connection
            joined = await session.connection()
        if joined.sync_connection is None or joined.closed:
            raise kinds.closed(joined)
    return joined


def _is_async(
    connection: object,
) -> "TypeGuard[AsyncConnection | AsyncSession | async_scoped_session[AsyncSession]]":
    # Importing it would need greenlet, which only its users have.
    module: Any = sys.modules.get("sqlalchemy.ext.asyncio")
    return module is not None and isinstance(
        connection, (module.AsyncConnection, module.AsyncSession, module.async_scoped_session)
    )


def _acted(connection: Connection, act: Callable[[sqlite3.Connection], T]) -> T:
    with _refused(connection):
        if not connection.in_transaction():
            # As its first statement would: what follows is the caller's to commit.
            connection.begin()
        driver: Any = connection.connection.driver_connection
        if connection.dialect.driver == "aiosqlite":
            # Named await_ from SQLAlchemy 2.1 on.
            wait = getattr(util, "await_", None) or util.await_only
            result: T = wait(driver._execute(act, driver._conn))
            return result
        return act(driver)


def _check_driver(connection: "Connection | AsyncConnection", wanted: frozenset[str]) -> None:
    dialect = connection.dialect
    if dialect.driver in wanted:
        return
    if dialect.driver in _SERVER:
        raise kinds.not_sqlite(connection)
    if dialect.driver in _FILE:
        raise kinds.not_postgres(connection)
    raise ConnectionMismatch(
        f"{kinds.class_of(connection)} is of the dialect {dialect.name}+{dialect.driver}, which cannot carry jobs; "
        "create the engine with postgresql+psycopg, postgresql+asyncpg, sqlite or sqlite+aiosqlite"
    )


@contextmanager
def _refused(connection: object) -> Iterator[None]:
    """What SQLAlchemy itself refuses before the database is asked."""
    try:
        yield
    except PendingRollbackError as error:
        raise kinds.failed() from error
    except InvalidRequestError as error:
        reason = str(error).partition("\n")[0].partition(" (Background")[0].rstrip(".")
        raise ConnectionMismatch(f"this {type(connection).__name__} cannot carry jobs: {reason}") from error


def _no_connection(connection: object) -> ConnectionMismatch:
    kind = kinds.class_of(connection)
    if isinstance(connection, Engine) or kind == "sqlalchemy.ext.asyncio.engine.AsyncEngine":
        return ConnectionMismatch(f"{kind} is no connection; write: with engine.begin() as connection: …")
    if isinstance(connection, sessionmaker):
        return ConnectionMismatch(f"{kind} is no session; write: with sessions.begin() as session: …")
    return ConnectionMismatch(f"{kind} is no connection; pass the Connection or the Session itself")
