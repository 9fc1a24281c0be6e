"""A caller's psycopg 3 connections, sync and async: is this one fit to carry a statement of ours in its transaction?

Knows nothing of jobs. Uses cursors of its own, so that the caller's row and cursor factories do not matter.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from duly.core.errors import ConnectionMismatch

Row = tuple[Any, ...]
Identity = tuple[Any, ...]
"""Of one schema in one database of one running server; its last part is None where our functions are missing."""

_checked: Final[WeakKeyDictionary[Any, Identity]] = WeakKeyDictionary()
_guard: Final = threading.Lock()


class CallersConnection:
    """What a store needs to know to trust a caller's connection."""

    def __init__(self, text: bytes, own: Callable[[], Identity], where: str) -> None:
        self._text = text
        self._own = own
        self._where = where

    def run(self, connection: object, text: bytes, parameters: Mapping[str, Any]) -> list[Row]:
        """Run one statement in the open transaction. ConnectionMismatch with the fix; the driver's errors unchanged."""
        if isinstance(connection, psycopg.AsyncConnection):
            raise ConnectionMismatch(
                "this is an AsyncConnection: use the form with an a (aenqueue, acomplete) and await it"
            )
        if not isinstance(connection, psycopg.Connection):
            raise ConnectionMismatch(_other_kind(connection))
        _check_transaction(connection)
        if not self._known(connection):
            with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
                cursor.execute(self._text, prepare=False)
                self._compare(connection, cursor.fetchone())
        with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
            cursor.execute(text, parameters, prepare=False, binary=True)
            return cursor.fetchall()

    async def arun(self, connection: object, text: bytes, parameters: Mapping[str, Any]) -> list[Row]:
        """As `run`, on an AsyncConnection."""
        if isinstance(connection, psycopg.Connection):
            raise ConnectionMismatch(
                "this is a blocking Connection: use the form without an a (enqueue, complete), or an AsyncConnection"
            )
        if not isinstance(connection, psycopg.AsyncConnection):
            raise ConnectionMismatch(_other_kind(connection))
        _check_transaction(connection)
        if not self._known(connection):
            async with psycopg.AsyncCursor(connection, row_factory=tuple_row) as cursor:
                await cursor.execute(self._text, prepare=False)
                self._compare(connection, await cursor.fetchone())
        async with psycopg.AsyncCursor(connection, row_factory=tuple_row) as cursor:
            await cursor.execute(text, parameters, prepare=False, binary=True)
            return await cursor.fetchall()

    def _known(self, connection: object) -> bool:
        with _guard:
            seen = _checked.get(connection)
        return seen is not None and seen == self._own()

    def _compare(self, connection: object, found: Row | None) -> None:
        own = self._own()
        if found != own:
            raise ConnectionMismatch(
                f"this connection leads to another database or server than the App's own, {self._where}: jobs "
                "enqueued there would never be seen. Pass a connection to the App's database, or make an App for it"
            )
        with _guard:
            _checked[connection] = own


def _check_transaction(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    if connection.closed:
        raise ConnectionMismatch("this connection is closed; pass one with an open transaction")
    status = connection.info.transaction_status
    if status == TransactionStatus.INERROR:
        raise ConnectionMismatch(
            "the transaction on this connection has failed already, PostgreSQL refuses everything until its end; "
            "roll it back and begin again"
        )
    # Without autocommit the driver itself opens the transaction with the first statement.
    if status == TransactionStatus.IDLE and connection.autocommit:
        raise ConnectionMismatch(
            "this connection is in autocommit mode and no transaction is open, so that the job would be stored "
            "at once; write: with connection.transaction(): ..."
        )


def _other_kind(connection: object) -> str:
    kind = type(connection)
    return (
        f"a {kind.__module__}.{kind.__qualname__} cannot carry jobs of a PostgreSQL App; "
        "pass the psycopg 3 connection (psycopg.Connection or psycopg.AsyncConnection) whose transaction is open"
    )
