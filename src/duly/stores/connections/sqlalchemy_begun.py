"""Which thread or task has begun which SQLAlchemy transaction: learnt from the engines' events, from `watch` on."""

import threading
from collections.abc import Iterator
from typing import Any, Final
from weakref import WeakKeyDictionary

from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine

from duly.stores.connections.ambient import BEGUN, Owner, Place, file_place, server_place

_begun: Final[WeakKeyDictionary[Connection, Owner]] = WeakKeyDictionary()
_guard: Final = threading.Lock()
_watching: Final = threading.Event()


def watch() -> None:
    """Listen to all engines of this process, those to come included. Once is enough."""
    if _watching.is_set():
        return
    with _guard:
        if _watching.is_set():
            return
        _watching.set()
        event.listen(Engine, "begin", _note)
        event.listen(Engine, "commit", _forget)
        event.listen(Engine, "rollback", _forget)


def in_transaction(connection: Connection) -> bool:
    """Whether the database knows of a transaction: not with AUTOCOMMIT, nor on SQLite before the first write."""
    driver: Any = connection.connection.driver_connection
    match connection.dialect.driver:
        case "asyncpg":
            return bool(driver.is_in_transaction())
        case "pysqlite" | "aiosqlite":
            return bool(driver.in_transaction)
        case "psycopg" | "psycopg_async":
            return driver.info.transaction_status in BEGUN
    return False


def open_here() -> Iterator[tuple[str, Place | None]]:
    """The class and the place of each transaction that this thread or task has open in its database."""
    with _guard:
        known = list(_begun.items()) if _begun else ()
    for connection, owner in known:
        if owner.is_here and not (connection.closed or connection.invalidated) and in_transaction(connection):
            yield "a session or connection of SQLAlchemy", _place(connection.engine.url)


def _note(connection: Connection) -> None:
    owner = Owner()
    with _guard:
        _begun[connection] = owner


def _forget(connection: Connection) -> None:
    with _guard:
        _begun.pop(connection, None)


def _place(url: URL) -> Place | None:
    match url.get_backend_name():
        case "sqlite":
            return file_place(url.database)
        case "postgresql":
            host = url.host or url.query.get("host", "")
            return server_place(
                host if isinstance(host, str) else host[0], url.port, url.database or url.username
            )
    return None
