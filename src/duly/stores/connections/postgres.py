"""Statements of a PostgreSQL store on a caller's connection of any kind: is it the right database, what do errors mean?

Knows nothing of jobs, and no driver: an error of the server is told by its SQLSTATE, whoever wraps it.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from weakref import WeakSet

from duly.core.errors import ConnectionMismatch, UsageError
from duly.stores import faults
from duly.stores.connections import ambient
from duly.stores.connections.kinds import Answer, Row, failed, kind_of

Identity = tuple[Any, ...]
"""Of one schema in one database of one running server; its last part is None where our functions are missing."""

_FAILED: Final = "25P02"
_READ_ONLY: Final = "25006"
_NO_RIGHT: Final = "42501"
_BAD_DATA: Final = ("22", "23", "54")


class CallersConnection:
    """What a store needs to know to trust a caller's connection."""

    def __init__(
        self,
        text: bytes,
        own: Callable[[], Identity],
        checked: Callable[[Identity], Identity],
        where: str,
        url: str,
    ) -> None:
        """`text` asks for an Identity; `own()` reads the store's, and blocks; `checked` is one that a connection of the
        store's own told."""
        self._text = text
        self._read_own = own
        self._checked = checked
        self._own: Identity | None = None
        self._where = where
        self._url = url
        self._fit: WeakSet[Any] = WeakSet()
        self._ours: WeakSet[Any] = WeakSet()
        self._guard = threading.Lock()
        self._reading = threading.Lock()

    def lends(self, connection: object) -> None:
        """Lends the store's own connection for a transaction: it tells where the store is without a second one.

        Behind a pooler the second could wait for ever, for a session that somebody holds who waits for a second, too.
        """
        with self._guard:
            self._ours.add(connection)

    def run(self, connection: object, text: bytes, parameters: Mapping[str, Any]) -> Answer:
        """Run one statement in the caller's transaction. ConnectionMismatch with the fix; the driver's own errors pass
        unchanged, but for those that are about what duly stores.
        """
        joined = kind_of(connection).on_server(connection)
        with _told_as_ours():
            if self._is_new(joined.remembered_by):
                found = joined.run(self._text, {}).rows[0]
                self._remember(
                    joined.remembered_by, found, self._where_the_store_is(joined.remembered_by, found)
                )
            answer = joined.run(text, parameters)
        if answer.pending:
            ambient.joined(joined.remembered_by, self._url)
        return answer

    async def arun(self, connection: object, text: bytes, parameters: Mapping[str, Any]) -> Answer:
        """As `run`, on an async connection."""
        joined = await kind_of(connection).aon_server(connection)
        with _told_as_ours():
            if self._is_new(joined.remembered_by):
                found = (await joined.run(self._text, {})).rows[0]
                own = await asyncio.to_thread(self._where_the_store_is, joined.remembered_by, found)
                self._remember(joined.remembered_by, found, own)
            answer = await joined.run(text, parameters)
        if answer.pending:
            ambient.joined(joined.remembered_by, self._url)
        return answer

    def _is_new(self, remembered_by: object) -> bool:
        with self._guard:
            return remembered_by not in self._fit

    def _where_the_store_is(self, remembered_by: object, found: Row) -> Identity:
        """The store's own identity. Blocks; only one thread of a process asks for it."""
        with self._guard:
            ours = remembered_by in self._ours
        if ours:
            return self._checked(found)
        with self._reading:
            own = self._own
            if own is None or found != own:
                # Not known yet, or the server was restarted since.
                own = self._own = self._read_own()
            return own

    def _remember(self, remembered_by: object, found: Row, own: Identity) -> None:
        if found != own:
            raise ConnectionMismatch(
                f"this connection leads to another database or server than the App's own, {self._where}: jobs "
                "enqueued there would never be seen. Pass a connection to the App's database, or make an App for it"
            )
        with self._guard:
            self._fit.add(remembered_by)


def sqlstate_of(error: BaseException | None) -> str | None:
    """The server's code for an error, of whichever driver or wrapped by whichever library."""
    for _ in range(4):
        if error is None:
            return None
        state = getattr(error, "sqlstate", None)
        if isinstance(state, str):
            return state
        original = getattr(error, "orig", None)
        error = original if isinstance(original, BaseException) else error.__cause__
    return None


@contextmanager
def _told_as_ours() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        meant = _meant(error)
        if meant is None:
            raise
        raise meant from error


def _meant(error: Exception) -> Exception | None:
    """Ours for an error that is about duly; None for any other, which the caller's own handling knows."""
    if isinstance(error, UnicodeError):
        return faults.DataFault(f"this text cannot be stored: {error}")
    state = sqlstate_of(error)
    if state is None:
        # The drivers' own refusals, as of a NUL in a text, have no code.
        refused = any(base.__name__ == "DataError" for base in type(error).__mro__)
        return faults.DataFault(f"this cannot be stored: {_first(error)}") if refused else None
    if state == _FAILED:
        return failed()
    if state == _READ_ONLY:
        return faults.ReadOnly(
            "the transaction on this connection is read-only: open it for writing to enqueue in it"
        )
    if state == _NO_RIGHT:
        return UsageError(
            f"the database user may not do this: {_first(error)}. "
            "Run as its owner: duly migrate, or GRANT USAGE on the schema and EXECUTE on its functions"
        )
    if state.startswith(_BAD_DATA):
        return faults.DataFault(f"this cannot be stored: {_first(error)}")
    return None


def _first(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
