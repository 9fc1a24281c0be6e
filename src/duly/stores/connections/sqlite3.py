"""A caller's sqlite3 connection: is it ours to write on, and is a transaction open? Knows no table of ours."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from duly.core.errors import ConnectionMismatch, DulyError
from duly.stores.connections import kinds
from duly.stores.sqlite.errors import FAILURES, CannotBecomeWriter, Unreachable, is_busy, locked, translate

T = TypeVar("T")

_COMMIT_PATIENCE: Final = 10.0
_COMMIT_PAUSE: Final = 0.005
_AS_READER: Final = (
    "the transaction on this connection may not write: it began as a reader and another connection wrote meanwhile, "
    "or another one holds the file. Roll it back and repeat it, beginning with BEGIN IMMEDIATE (in Django: "
    'OPTIONS = {"transaction_mode": "IMMEDIATE"})'
)


class SQLite3:
    """See `Kind`. Its connections do for blocking and for async code alike: both use them in their own thread."""

    def on_server(self, connection: object) -> Any:
        raise kinds.not_postgres(connection)

    async def aon_server(self, connection: object) -> Any:
        raise kinds.not_postgres(connection)

    def on_file(self, connection: object, act: Callable[[sqlite3.Connection], T]) -> T:
        if not isinstance(connection, sqlite3.Connection):
            raise ConnectionMismatch(
                f"{kinds.class_of(connection)} is no connection; pass the sqlite3.Connection itself"
            )
        return act(connection)

    async def aon_file(self, connection: object, act: Callable[[sqlite3.Connection], T]) -> T:
        return self.on_file(connection, act)


KIND = SQLite3()


def check(connection: sqlite3.Connection, path: str) -> None:
    """ConnectionMismatch unless it is on the file at `path`, open, and of this thread."""
    try:
        with plain_text(connection):
            opened = [
                name for _, schema, name in _rows(connection, "pragma database_list") if schema == "main"
            ]
    except sqlite3.ProgrammingError as error:
        raise ConnectionMismatch(f"connection= cannot be used here: {error}") from error
    if not _same_file(opened[0] if opened else "", path):
        raise ConnectionMismatch(
            f"connection= leads to {opened[0] or 'a database in memory'} and the store is {path}; open the "
            "connection on that file itself (ATTACH does not commit both at once)"
        )


@contextmanager
def transaction(connection: sqlite3.Connection, path: str) -> Iterator[bool]:
    """Inside a transaction of the caller's, or one that the caller commits, or (False) in autocommit one of ours."""
    if connection.in_transaction:
        yield True
        return
    at_once = getattr(connection, "autocommit", None) is True or connection.isolation_level is None
    try:
        _run(connection, "begin immediate")
    except sqlite3.OperationalError as error:
        if is_busy(error):
            raise Unreachable(locked(path)) from error
        raise translate(error, path) or error from error
    try:
        yield not at_once
        if at_once:
            _commit(connection, path)
    except BaseException:
        # Nothing of the caller's is in it, and left open it would keep everyone else waiting.
        if connection.in_transaction:
            _run(connection, "rollback")
        raise


@contextmanager
def within(connection: sqlite3.Connection, path: str) -> Iterator[None]:
    """All of the block's writes or none, in the transaction that stays open; errors in duly's words."""
    with plain_text(connection):
        try:
            _run(connection, "savepoint duly")
            try:
                yield
            except BaseException:
                if connection.in_transaction:
                    _run(connection, "rollback to duly")
                    _run(connection, "release duly")
                raise
            _run(connection, "release duly")
        except FAILURES as error:
            raise _meant(error, path) from error


@contextmanager
def plain_text(connection: sqlite3.Connection) -> Iterator[None]:
    """The caller's text_factory would turn what we read into something else."""
    theirs = connection.text_factory
    connection.text_factory = str
    try:
        yield
    finally:
        connection.text_factory = theirs


def _commit(connection: sqlite3.Connection, path: str) -> None:
    # In rollback mode a reader refuses the commit and leaves the transaction open: only COMMIT is repeated.
    deadline = time.monotonic() + _COMMIT_PATIENCE
    while True:
        try:
            _run(connection, "commit")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise translate(error, path, committing=True) or error from error
            if time.monotonic() >= deadline:
                raise Unreachable(locked(path, _COMMIT_PATIENCE)) from error
        time.sleep(_COMMIT_PAUSE)


def _meant(error: BaseException, path: str) -> BaseException:
    if is_busy(error):
        return CannotBecomeWriter(_AS_READER)
    meant: DulyError | None = translate(error, path)
    return error if meant is None else meant


def _rows(connection: sqlite3.Connection, statement: str) -> list[tuple[int, str, str]]:
    cursor = sqlite3.Connection.cursor(connection, sqlite3.Cursor)
    cursor.row_factory = None
    try:
        return cursor.execute(statement).fetchall()
    finally:
        cursor.close()


def _run(connection: sqlite3.Connection, statement: str) -> None:
    sqlite3.Connection.cursor(connection, sqlite3.Cursor).execute(statement).close()


def _same_file(opened: str, path: str) -> bool:
    try:
        return bool(opened) and Path(opened).samefile(path)
    except OSError:
        return False
