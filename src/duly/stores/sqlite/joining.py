"""Acts inside a caller's transaction, on the thread of the connection, whatever library it is wrapped in.

Writes no SQL but through the acts; begins a transaction only where the caller's library would, and never ends that.
"""

import sqlite3
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from duly.stores.connections import ambient
from duly.stores.connections import sqlite3 as joined
from duly.stores.connections.kinds import kind_of
from duly.stores.sqlite import migrating
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.errors import FAILURES, translate
from duly.stores.sqlite.session import Session

T = TypeVar("T")
Act = Callable[[Session], T]


class Joining:
    """Callers' connections to one file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def write(self, connection: object, act: Act[T]) -> tuple[T, bool]:
        """What `act` answered, and whether it hangs on the caller's commit; in autocommit it is committed by now."""
        answer, pending, tells = kind_of(connection).on_file(connection, partial(self._write, act=act))
        if pending:
            self._remember(connection, tells)
        return answer, pending

    async def awrite(self, connection: object, act: Act[T]) -> tuple[T, bool]:
        """As `write`, for async code."""
        answer, pending, tells = await kind_of(connection).aon_file(connection, partial(self._write, act=act))
        if pending:
            self._remember(connection, tells)
        return answer, pending

    def read(self, connection: object, act: Act[T]) -> T:
        """What `act` reads, as the caller's transaction sees it. Begins no transaction and takes no lock."""
        return kind_of(connection).on_file(connection, partial(self._read, act=act))

    async def aread(self, connection: object, act: Act[T]) -> T:
        """As `read`, for async code."""
        return await kind_of(connection).aon_file(connection, partial(self._read, act=act))

    def _remember(self, connection: object, tells: bool) -> None:
        # Of SQLAlchemy's and Django's their libraries tell; pools may lend the raw one to another thread next.
        if isinstance(connection, sqlite3.Connection):
            self._database.holding.joined(connection)
        elif tells:
            ambient.joined(connection, f"sqlite:///{self._database.path}")

    def _write(self, theirs: sqlite3.Connection, act: Act[T]) -> tuple[T, bool, bool]:
        database = self._database
        joined.check(theirs, database.path)
        if not theirs.in_transaction:
            # Nothing of the caller's is locked yet: our own connection may create the tables.
            database.prepare()
        with joined.transaction(theirs, database.path) as pending, joined.within(theirs, database.path):
            session = database.session_on(theirs)
            try:
                # A write first: a deferred transaction that begins by reading could not wait for its turn.
                self._take_lock(session)
                answer = act(session)
            finally:
                session.close()
        if session.rings and not pending:
            database.wake.bump()
            database.wake.ring()
        # With autocommit=False a transaction is open at all times, and says nothing.
        return answer, pending, getattr(theirs, "autocommit", None) is not False

    def _read(self, theirs: sqlite3.Connection, act: Act[T]) -> T:
        database = self._database
        joined.check(theirs, database.path)
        if not theirs.in_transaction:
            database.prepare()
        elif not database.is_ready:
            # Our tables may be missing or old, and the caller's transaction holds the file.
            return self._write(theirs, act)[0]
        with joined.plain_text(theirs):
            session = database.session_on(theirs)
            try:
                return act(session)
            except FAILURES as error:
                raise translate(error, database.path) or error from error
            finally:
                session.close()

    def _take_lock(self, session: Session) -> None:
        database = self._database
        try:
            session.numbers(0)
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            # The caller's transaction holds the file: the tables come and stay with it.
            migrating.apply_missing(session, database.prefix, database.path)
            return
        if not database.is_ready:
            migrating.apply_missing(session, database.prefix, database.path)
