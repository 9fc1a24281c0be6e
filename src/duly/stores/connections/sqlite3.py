"""A caller's sqlite3 connection: is it ours to write on, and is a transaction open? Knows no table of ours."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from duly.core.errors import ConnectionMismatch, DulyError
from duly.stores.sqlite.errors import FAILURES, CannotBecomeWriter, Unreachable, is_busy, locked, translate

_WITHOUT_TRANSACTION: Final = (
    "this connection is in autocommit and has no open transaction, so that the job would be stored at once; "
    'run connection.execute("BEGIN IMMEDIATE") first, or leave connection= out'
)
_AS_READER: Final = (
    "the transaction on this connection may not write: it began as a reader and another connection wrote meanwhile, "
    "or another one holds the file. Roll it back and repeat it, beginning with BEGIN IMMEDIATE"
)


def check(connection: object, path: str) -> sqlite3.Connection:
    """The connection, if it is one of the sqlite3 module on the file at `path`; ConnectionMismatch else."""
    if not isinstance(connection, sqlite3.Connection):
        # Another SQLite library in one process drops this one's locks on the file and loses commits.
        raise ConnectionMismatch(
            f"connection= is a {type(connection).__module__}.{type(connection).__qualname__}; the store is the SQLite "
            f"file {path} and takes connections of Python's own sqlite3 module only"
        )
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
    return connection


def begin(connection: sqlite3.Connection, path: str) -> None:
    """Make sure that a transaction is open: the caller's, or in legacy mode one of ours that the caller commits."""
    if connection.in_transaction:
        return
    if getattr(connection, "autocommit", None) is True or connection.isolation_level is None:
        raise ConnectionMismatch(_WITHOUT_TRANSACTION)
    try:
        connection.execute("begin immediate").close()
    except sqlite3.OperationalError as error:
        if is_busy(error):
            raise Unreachable(locked(path)) from error
        raise translate(error, path) or error from error


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
