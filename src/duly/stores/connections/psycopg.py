"""A caller's psycopg 3 connections, sync and async.

Uses cursors of its own, so that the caller's row and cursor factories do not matter.
"""

import sqlite3
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from duly.core.errors import ConnectionMismatch
from duly.stores.connections import kinds
from duly.stores.connections.kinds import Answer, Parameters

T = TypeVar("T")


class _Blocking:
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    @property
    def remembered_by(self) -> object:
        return self._connection

    def run(self, text: bytes, parameters: Parameters) -> Answer:
        with psycopg.Cursor(self._connection, row_factory=tuple_row) as cursor:
            cursor.execute(text, parameters, prepare=False, binary=True)
            return Answer(cursor.fetchall(), in_transaction(self._connection))


class _Async:
    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection

    @property
    def remembered_by(self) -> object:
        return self._connection

    async def run(self, text: bytes, parameters: Parameters) -> Answer:
        async with psycopg.AsyncCursor(self._connection, row_factory=tuple_row) as cursor:
            await cursor.execute(text, parameters, prepare=False, binary=True)
            return Answer(await cursor.fetchall(), in_transaction(self._connection))


class Psycopg:
    """See `Kind`."""

    def on_server(self, connection: object) -> _Blocking:
        if isinstance(connection, psycopg.AsyncConnection):
            raise kinds.async_in_blocking(connection)
        if not isinstance(connection, psycopg.Connection):
            raise _no_connection(connection)
        _check_usable(connection)
        return _Blocking(connection)

    async def aon_server(self, connection: object) -> _Async:
        if isinstance(connection, psycopg.Connection):
            raise kinds.blocking_in_async(connection, "a psycopg.AsyncConnection")
        if not isinstance(connection, psycopg.AsyncConnection):
            raise _no_connection(connection)
        _check_usable(connection)
        return _Async(connection)

    def on_file(self, connection: object, act: Callable[[sqlite3.Connection], T]) -> T:
        raise kinds.not_sqlite(connection)

    async def aon_file(self, connection: object, act: Callable[[sqlite3.Connection], T]) -> T:
        raise kinds.not_sqlite(connection)


KIND = Psycopg()


def in_transaction(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Whether the server holds a transaction open for it."""
    return not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE


def _check_usable(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    if connection.closed:
        raise kinds.closed(connection)
    if connection.info.transaction_status == TransactionStatus.INERROR:
        raise kinds.failed()


def _no_connection(connection: object) -> ConnectionMismatch:
    return ConnectionMismatch(
        f"{kinds.class_of(connection)} is no connection; pass the psycopg.Connection or psycopg.AsyncConnection itself"
    )
