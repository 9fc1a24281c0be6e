"""A caller's aiosqlite connections: their sqlite3 connection, on the thread that aiosqlite keeps for it."""

import sqlite3
from collections.abc import Callable
from typing import Any, TypeVar

import aiosqlite

from duly.core.errors import ConnectionMismatch
from duly.stores.connections import kinds

T = TypeVar("T")


class Aiosqlite:
    """See `Kind`."""

    def on_server(self, connection: object) -> Any:
        raise kinds.not_postgres(connection)

    async def aon_server(self, connection: object) -> Any:
        raise kinds.not_postgres(connection)

    def on_file(self, connection: object, act: Callable[[sqlite3.Connection], T]) -> T:
        raise kinds.async_in_blocking(connection)

    async def aon_file(self, connection: object, act: Callable[[sqlite3.Connection], T]) -> T:
        if not isinstance(connection, aiosqlite.Connection):
            raise ConnectionMismatch(
                f"{kinds.class_of(connection)} is no connection; pass the aiosqlite.Connection itself"
            )
        if connection._connection is None:
            raise ConnectionMismatch(
                "this aiosqlite.Connection is closed, or was never opened; write: async with aiosqlite.connect(…) as …"
            )
        # The library's own way onto its thread; each of its public methods is one such call of one sqlite3 method.
        on_thread: Any = connection._execute
        result: T = await on_thread(act, connection._connection)
        return result


KIND = Aiosqlite()
