"""A caller's asyncpg connections, lent by a pool or not. Knows no statement of ours."""

import gc
import sqlite3
import sys
import weakref
from collections.abc import Callable
from typing import Any, Final, TypeVar

import asyncpg

from duly.core.errors import ConnectionMismatch
from duly.stores.connections import kinds
from duly.stores.connections.asyncpg_text import positional, values
from duly.stores.connections.kinds import Answer, Parameters

T = TypeVar("T")


class _Async:
    def __init__(self, connection: Any, itself: "asyncpg.Connection[Any]") -> None:
        self._connection = connection
        self._itself = itself

    @property
    def remembered_by(self) -> object:
        return self._itself

    async def run(self, text: bytes, parameters: Parameters) -> Answer:
        statement, names = positional(text)
        found = await self._connection.fetch(statement, *values(names, parameters))
        return Answer([tuple(row) for row in found], self._itself.is_in_transaction())


class Asyncpg:
    """See `Kind`."""

    def on_server(self, connection: object) -> Any:
        raise kinds.async_in_blocking(connection)

    async def aon_server(self, connection: Any) -> _Async:
        if isinstance(connection, asyncpg.Pool):
            raise ConnectionMismatch(
                "a pool is no connection; write: async with pool.acquire() as connection, connection.transaction(): …"
            )
        itself = connection
        if isinstance(connection, asyncpg.pool.PoolConnectionProxy):
            # Another one for each loan of the same connection.
            itself = connection._con
            if itself is None:
                raise ConnectionMismatch("this connection was given back to its pool; acquire one first")
        if not isinstance(itself, asyncpg.Connection):
            raise ConnectionMismatch(
                f"{kinds.class_of(connection)} is no connection; pass the asyncpg.Connection itself"
            )
        if itself.is_closed():
            raise kinds.closed(connection)
        if not itself.is_in_transaction() and _is_sqlalchemys(itself):
            raise ConnectionMismatch(
                "this asyncpg connection belongs to SQLAlchemy, which has begun no transaction on it: what is stored "
                "now would survive its rollback. Pass the AsyncSession or AsyncConnection itself"
            )
        return _Async(connection, itself)

    def on_file(self, connection: object, act: Callable[[sqlite3.Connection], T]) -> T:
        raise kinds.not_sqlite(connection)

    async def aon_file(self, connection: object, act: Callable[[sqlite3.Connection], T]) -> T:
        raise kinds.not_sqlite(connection)


KIND = Asyncpg()

_not_sqlalchemys: Final[weakref.WeakSet[Any]] = weakref.WeakSet()


def _is_sqlalchemys(connection: object) -> bool:
    """Whether SQLAlchemy holds it. Nothing leads from it to its holder, so that everything alive is asked, once."""
    adapter: Any = getattr(
        sys.modules.get("sqlalchemy.dialects.postgresql.asyncpg"), "AsyncAdapt_asyncpg_connection", None
    )
    if adapter is None or connection in _not_sqlalchemys:
        return False
    if any(type(holder) is adapter for holder in gc.get_referrers(connection)):
        return True
    _not_sqlalchemys.add(connection)
    return False
