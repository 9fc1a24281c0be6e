"""Transactions that this thread or task has open on a store's database and has not handed in, as far as can be known.

Looks at connections that were handed in before, and asks SQLAlchemy and Django where the program has loaded them.
"""

import asyncio
import sys
import threading
import weakref
from collections.abc import Iterator
from functools import lru_cache
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
        # Not its number, which another thread may get after its end.
        self._thread = weakref.ref(threading.current_thread())
        task = _task()
        self._task = None if task is None else weakref.ref(task)

    @property
    def is_here(self) -> bool:
        """Whether this very thread and task runs now."""
        task = None if self._task is None else self._task()
        return self._thread() is threading.current_thread() and task is _task()


class _Mark(NamedTuple):
    owner: Owner
    place: Place | None


_joined: Final[weakref.WeakKeyDictionary[Any, _Mark]] = weakref.WeakKeyDictionary()
_guard: Final = threading.Lock()
_HERE: Final = frozenset({"", "localhost", "127.0.0.1", "::1"})
_PORT: Final = 5432
BEGUN: Final = frozenset({2, 3})
"""libpq's PQTRANS_INTRANS and PQTRANS_INERROR. A connection that is busy is in the hands of another thread."""
_ASKED: Final = frozenset({"psycopg", "asyncpg", "aiosqlite"})
"""Whose connections are looked at themselves; the others have ways of their own."""


def joined(connection: object, url: str) -> None:
    """Remember a connection in whose transaction something of this store stands, or is about to."""
    if _library(connection) is not None:
        with _guard:
            _joined[connection] = _Mark(Owner(), place_of(url))


def left(connection: object) -> None:
    """Forget one whose transaction is over and that others may use from now on."""
    with _guard:
        _joined.pop(connection, None)


def watch() -> None:
    """Begin to learn of transactions, from the libraries that are loaded by now. Costs nothing once it has."""
    if "sqlalchemy.engine" in sys.modules:
        from duly.stores.connections import sqlalchemy_begun

        sqlalchemy_begun.watch()


def unjoined(url: str) -> str | None:
    """Whose transaction is open here on the database at `url`, by the class of its connection; None: nobody's known."""
    if not _joined and "sqlalchemy.engine" not in sys.modules and "django.db" not in sys.modules:
        # Asked before every enqueue.
        return None
    for kind, place in _found():
        if place is not None and place == place_of(url):
            return kind
    return None


def _found() -> Iterator[tuple[str, Place | None]]:
    with _guard:
        known = list(_joined.items()) if _joined else ()
    for connection, mark in known:
        if mark.owner.is_here and _is_open(connection):
            yield class_of(connection), mark.place
    if "sqlalchemy.engine" in sys.modules:
        from duly.stores.connections import sqlalchemy_begun

        yield from sqlalchemy_begun.open_here()
    if "django.db" in sys.modules:
        from duly.stores.connections import django_begun

        yield from django_begun.open_here()


@lru_cache(maxsize=64)
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


def _library(connection: object) -> str | None:
    """Which of those that are asked themselves it is of."""
    packages = (base.__module__.partition(".")[0] for base in type(connection).__mro__)
    return next((package for package in packages if package in _ASKED), None)


def _is_open(connection: Any) -> bool:
    match _library(connection):
        case "psycopg":
            return not connection.closed and connection.info.transaction_status in BEGUN
        case "asyncpg":
            return not connection.is_closed() and bool(connection.is_in_transaction())
        case _:
            return connection._connection is not None and bool(connection.in_transaction)


def _task() -> "asyncio.Task[Any] | None":
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
