"""A caller's Django connections: `django.db.connection`, `connections[alias]`, `transaction.get_connection()`.

Inside `atomic()` they join it; outside, Django commits each statement at once.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import DatabaseError, InterfaceError
from django.db.transaction import TransactionManagementError
from django.db.utils import ConnectionHandler

from duly.core.errors import ConnectionMismatch
from duly.stores.connections import kinds
from duly.stores.connections.kinds import Answer, OnServer, Parameters

T = TypeVar("T")


class _Blocking:
    def __init__(self, wrapper: Any, raw: OnServer) -> None:
        self._wrapper = wrapper
        self._raw = raw

    @property
    def remembered_by(self) -> object:
        return self._raw.remembered_by

    def run(self, text: bytes, parameters: Parameters) -> Answer:
        # Not by Django's cursor, which reads times without their zone under USE_TZ=False.
        with self._wrapper.wrap_database_errors:
            return self._raw.run(text, parameters)


class _Async:
    """Django keeps a connection to one thread; async code reaches it by `sync_to_async`, and so does this."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.remembered_by: object = connection

    async def begin(self) -> "_Async":
        self.remembered_by = await sync_to_async(lambda: KIND.on_server(self._connection).remembered_by)()
        return self

    async def run(self, text: bytes, parameters: Parameters) -> Answer:
        return await sync_to_async(lambda: KIND.on_server(self._connection).run(text, parameters))()


class Django:
    """See `Kind`."""

    def on_server(self, connection: object) -> _Blocking:
        wrapper, raw = _opened(connection)
        if wrapper.vendor != "postgresql":
            raise kinds.not_postgres(raw) if wrapper.vendor == "sqlite" else _other_backend(wrapper)
        return _Blocking(wrapper, kinds.kind_of(raw).on_server(raw))

    async def aon_server(self, connection: object) -> _Async:
        return await _Async(connection).begin()

    def on_file(self, connection: object, act: Callable[[sqlite3.Connection], T]) -> T:
        wrapper, raw = _opened(connection)
        if wrapper.vendor != "sqlite":
            raise kinds.not_sqlite(raw) if wrapper.vendor == "postgresql" else _other_backend(wrapper)
        return act(raw)

    async def aon_file(self, connection: object, act: Callable[[sqlite3.Connection], T]) -> T:
        return await sync_to_async(lambda: self.on_file(connection, act))()


KIND = Django()


def _opened(connection: Any) -> tuple[Any, Any]:
    """The wrapper, and the driver's connection in it, opened as Django opens it: with its first use."""
    if isinstance(connection, ConnectionHandler):
        raise ConnectionMismatch(
            "django.db.connections are many; pass one of them, as django.db.connections['default']"
        )
    # A proxy and a wrapper have the same attributes, whatever class a third party's backend has.
    if not hasattr(connection, "wrap_database_errors"):
        raise ConnectionMismatch(
            f"{kinds.class_of(connection)} is no connection; pass django.db.connection or connections[alias]"
        )
    with _refused(connection):
        connection.validate_thread_sharing()
        if connection.closed_in_transaction:
            raise kinds.closed(connection)
        connection.validate_no_broken_transaction()
        connection.ensure_connection()
    return connection, connection.connection


@contextmanager
def _refused(connection: Any) -> Iterator[None]:
    """What Django itself refuses before the database is asked."""
    try:
        yield
    except TransactionManagementError as error:
        raise kinds.failed() from error
    except InterfaceError as error:
        raise kinds.closed(connection) from error
    except DatabaseError as error:
        if error.__cause__ is not None:
            raise  # the database does not answer; Django's own error says so
        raise ConnectionMismatch(
            "this Django connection belongs to another thread: pass django.db.connection, which stands for the one of "
            "the thread that uses it"
        ) from error


def _other_backend(wrapper: Any) -> ConnectionMismatch:
    return ConnectionMismatch(
        f"the Django connection {wrapper.alias!r} is of the backend {wrapper.vendor}; duly keeps jobs in PostgreSQL "
        "and SQLite"
    )
