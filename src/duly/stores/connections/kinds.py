"""Which module knows a caller's connection, and what it must be able to do with one. Imports no driver.

A connection names its library by its class, so that no library is imported that its user has not imported already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from duly.core.errors import ConnectionMismatch

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")

Row = tuple[Any, ...]
Parameters = Mapping[str, Any]


class Answer(NamedTuple):
    """What one statement brought, and whether it hangs on the caller's commit."""

    rows: list[Row]
    pending: bool


class OnServer(Protocol):
    """Runs statements on PostgreSQL in whatever transaction the caller's connection has; never ends it.

    The driver's errors pass unchanged, as the caller's own code knows them.
    """

    @property
    def remembered_by(self) -> object:
        """What its database is checked once for: the pool of an engine, or the connection. Takes weak references."""

    def run(self, text: bytes, parameters: Parameters) -> Answer: ...


class AsyncOnServer(Protocol):
    """As OnServer, on the caller's event loop."""

    @property
    def remembered_by(self) -> object: ...

    async def run(self, text: bytes, parameters: Parameters) -> Answer: ...


class Kind(Protocol):
    """One library's connections. Each method raises ConnectionMismatch for what it cannot join, with the remedy."""

    def on_server(self, connection: Any) -> OnServer: ...

    async def aon_server(self, connection: Any) -> AsyncOnServer: ...

    def on_file(self, connection: Any, act: Callable[[sqlite3.Connection], T]) -> T:
        """Call `act` with the sqlite3 connection underneath, on the thread that it belongs to."""

    async def aon_file(self, connection: Any, act: Callable[[sqlite3.Connection], T]) -> T: ...


_MODULES: Final = frozenset({"psycopg", "asyncpg", "sqlalchemy", "django", "aiosqlite", "sqlite3"})
_TAKEN: Final = (
    "connection= takes a connection of psycopg, asyncpg, sqlite3 or aiosqlite, a Connection or Session of SQLAlchemy, "
    "sync or async, or a Django connection"
)
_NEARLY: Final = {
    "psycopg_pool": "a pool is no connection; write: with pool.connection() as connection: …",
    "psycopg2": (
        "it is a connection of psycopg2; connect with psycopg 3 (in SQLAlchemy: create_engine('postgresql+psycopg://…'))"
    ),
    "apsw": "a second SQLite library in one process drops the first one's locks; use Python's own sqlite3",
    "pysqlite3": "a second SQLite library in one process drops the first one's locks; use Python's own sqlite3",
}


def kind_of(connection: object) -> Kind:
    """The kind of a connection, by the library of its class or of a class it inherits from. ConnectionMismatch else."""
    packages = [base.__module__.partition(".")[0] for base in type(connection).__mro__]
    for package in packages:
        if package in _MODULES:
            kind: Kind = import_module(f"duly.stores.connections.{package}").KIND
            return kind
    for package in packages:
        if package in _NEARLY:
            raise ConnectionMismatch(f"{class_of(connection)} cannot carry jobs: {_NEARLY[package]}")
    raise ConnectionMismatch(f"{class_of(connection)} is no connection that can carry jobs. {_TAKEN}")


def class_of(connection: object) -> str:
    kind = type(connection)
    return f"{kind.__module__}.{kind.__qualname__}"


def blocking_in_async(connection: object, instead: str) -> ConnectionMismatch:
    """A blocking connection was handed to an async call."""
    return ConnectionMismatch(
        f"{class_of(connection)} is a blocking connection: use the form without an a (enqueue, complete), or pass "
        f"{instead}"
    )


def async_in_blocking(connection: object) -> ConnectionMismatch:
    """An async connection was handed to a blocking call."""
    return ConnectionMismatch(
        f"{class_of(connection)} is async: use the form with an a (aenqueue, acomplete) and await it"
    )


def closed(connection: object) -> ConnectionMismatch:
    return ConnectionMismatch(f"this {class_of(connection)} is closed; pass one that is open")


def not_postgres(connection: object) -> ConnectionMismatch:
    """A connection to SQLite, handed to a PostgreSQL App."""
    return ConnectionMismatch(
        f"{class_of(connection)} leads to SQLite and the App's store is PostgreSQL; pass a connection to the App's "
        "database, or make an App for that file"
    )


def not_sqlite(connection: object) -> ConnectionMismatch:
    """A connection to PostgreSQL, handed to an SQLite App."""
    return ConnectionMismatch(
        f"{class_of(connection)} leads to PostgreSQL and the App's store is an SQLite file; pass a connection to the "
        "App's file, or make an App for that database"
    )


def failed(detail: str = "") -> ConnectionMismatch:
    """The open transaction takes no more statements."""
    return ConnectionMismatch(
        f"the transaction on this connection has failed already{detail}, nothing more can be stored in it; "
        "roll it back and begin again"
    )
