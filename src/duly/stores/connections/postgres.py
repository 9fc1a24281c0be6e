"""Statements of a PostgreSQL store on a caller's connection of any kind: is it the right database, what do errors mean?

Knows nothing of jobs, and no driver: an error of the server is told by its SQLSTATE, whoever wraps it.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from duly.core.errors import ConnectionMismatch, UsageError
from duly.stores import faults
from duly.stores.connections import ambient
from duly.stores.connections.kinds import Answer, Row, failed, kind_of

Identity = tuple[Any, ...]
"""Of one schema in one database of one running server; its last part is None where our functions are missing."""

_checked: Final[WeakKeyDictionary[Any, Identity]] = WeakKeyDictionary()
_guard: Final = threading.Lock()

_FAILED: Final = "25P02"
_READ_ONLY: Final = "25006"
_NO_RIGHT: Final = "42501"
_BAD_DATA: Final = ("22", "23", "54")


class CallersConnection:
    """What a store needs to know to trust a caller's connection."""

    def __init__(self, text: bytes, own: Callable[[bool], Identity], where: str, url: str) -> None:
        """`text` asks for an Identity; `own(again)` is the store's, read again if need be."""
        self._text = text
        self._own = own
        self._where = where
        self._url = url

    def run(self, connection: object, text: bytes, parameters: Mapping[str, Any]) -> Answer:
        """Run one statement in the caller's transaction. ConnectionMismatch with the fix; the driver's own errors pass
        unchanged, but for those that are about what duly stores.
        """
        joined = kind_of(connection).on_server(connection)
        try:
            if self._is_new(joined.remembered_by, self._own(False)):
                found = _identity(joined.run(self._text, {}))
                self._compare(
                    joined.remembered_by, found, found == self._own(False) or found == self._own(True)
                )
            answer = joined.run(text, parameters)
        except Exception as error:
            meant = _meant(error)
            if meant is None:
                raise
            raise meant from error
        if answer.pending:
            ambient.joined(joined.remembered_by, self._url)
        return answer

    async def arun(self, connection: object, text: bytes, parameters: Mapping[str, Any]) -> Answer:
        """As `run`, on an async connection."""
        joined = await kind_of(connection).aon_server(connection)
        try:
            own = await asyncio.to_thread(self._own, False)
            if self._is_new(joined.remembered_by, own):
                found = _identity(await joined.run(self._text, {}))
                fits = found == own or found == await asyncio.to_thread(self._own, True)
                self._compare(joined.remembered_by, found, fits)
            answer = await joined.run(text, parameters)
        except Exception as error:
            meant = _meant(error)
            if meant is None:
                raise
            raise meant from error
        if answer.pending:
            ambient.joined(joined.remembered_by, self._url)
        return answer

    @staticmethod
    def _is_new(remembered_by: object, own: Identity) -> bool:
        with _guard:
            return _checked.get(remembered_by) != own

    def _compare(self, remembered_by: object, found: Identity, fits: bool) -> None:
        if not fits:
            raise ConnectionMismatch(
                f"this connection leads to another database or server than the App's own, {self._where}: jobs "
                "enqueued there would never be seen. Pass a connection to the App's database, or make an App for it"
            )
        with _guard:
            _checked[remembered_by] = found


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


def _identity(answer: Answer) -> Identity:
    row: Row = answer.rows[0]
    return tuple(row)


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
