"""Transactions that this thread or task has open on a store's database and has not handed in, as far as can be known.

Looks at connections that were handed in before, and asks SQLAlchemy and Django where the program has loaded them.
"""

import asyncio
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from duly.stores.connections.kinds import class_of


class Place(NamedTuple):
    """Where a database is, near enough to tell two of them apart."""

    host: str
    """Empty on this machine, whatever the way there."""
    port: int
    database: str


class Owner:
    """The thread, and in async code the task, that began a transaction."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        task = _task()
        self._task = None if task is None else weakref.ref(task)

    @property
    def is_here(self) -> bool:
        """Whether this very thread and task runs now."""
        task = None if self._task is None else self._task()
        return self._thread == threading.get_ident() and task is _task()


class _Mark(NamedTuple):
    owner: Owner
    place: Place | None


_joined: Final[weakref.WeakKeyDictionary[Any, _Mark]] = weakref.WeakKeyDictionary()
_guard: Final = threading.Lock()
_HERE: Final = frozenset({"", "localhost", "127.0.0.1", "::1"})
_PORT: Final = 5432
_ASKED: Final = frozenset({"psycopg", "asyncpg", "aiosqlite"})
"""Whose connections are looked at themselves; the others have ways of their own."""


def joined(connection: object, url: str) -> None:
    """Remember a connection in whose transaction something of this store stands."""
    if _library(connection) in _ASKED:
        with _guard:
            _joined[connection] = _Mark(Owner(), place_of(url))


def watch() -> None:
    """Begin to learn of transactions, from the libraries that are loaded by now."""
    if "sqlalchemy.engine" in sys.modules:
        from duly.stores.connections import sqlalchemy_begun

        sqlalchemy_begun.watch()


def unjoined(url: str) -> str | None:
    """Whose transaction is open here on the database at `url`, by the class of its connection; None: nobody's known."""
    wanted = place_of(url)
    if wanted is None:
        return None
    with _guard:
        known = list(_joined.items())
    for connection, mark in known:
        if mark.place == wanted and mark.owner.is_here and _is_open(connection):
            return class_of(connection)
    return next((kind for kind, place in _found() if place == wanted), None)


def _found() -> Iterator[tuple[str, Place | None]]:
    if "sqlalchemy.engine" in sys.modules:
        from duly.stores.connections import sqlalchemy_begun

        yield from sqlalchemy_begun.open_here()
    if "django.db" in sys.modules:
        from duly.stores.connections import django_begun

        yield from django_begun.open_here()


def place_of(url: str) -> Place | None:
    """The place that a store's URL names; None when it cannot be told."""
    try:
        parts = urlsplit(url)
        if parts.scheme.startswith("sqlite"):
            return file_place(url.partition(":///")[2].partition("?")[0])
        if not parts.scheme.startswith("postgres"):
            return None
        host = parts.hostname or parse_qs(parts.query).get("host", [""])[0]
        return server_place(unquote(host), parts.port, unquote(parts.path.lstrip("/")) or parts.username)
    except ValueError:
        return None


def file_place(path: str | None) -> Place | None:
    if not path or path == ":memory:" or path.startswith("file:"):
        return None
    return Place("", 0, str(Path(path).resolve()))


def server_place(host: str | None, port: int | str | None, database: str | None) -> Place:
    where = host or ""
    here = where in _HERE or where.startswith("/")
    return Place("" if here else where, int(port or _PORT), database or "")


def _library(connection: object) -> str:
    return type(connection).__module__.partition(".")[0]


def _is_open(connection: Any) -> bool:
    match _library(connection):
        case "psycopg":
            return not connection.closed and bool(connection.info.transaction_status)
        case "asyncpg":
            return not connection.is_closed() and bool(connection.is_in_transaction())
        case _:
            return connection._connection is not None and bool(connection.in_transaction)


def _task() -> "asyncio.Task[Any] | None":
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
