"""Statements that come often, prepared and spoken to libpq itself: the driver's cursors cost more than the statements.

Knows no jobs. Values are sent as our arrays pack them, else as text; every one is cast to its type in the statement.
"""

import re
import select
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGconn, PGresult

from duly.stores.postgres.arrays import Packed
from duly.stores.postgres.patience import PatientConnection
from duly.stores.postgres.statements import statement
from duly.stores.postgres.translation import UNPREPARED

T = TypeVar("T")
Row = tuple[Any, ...]

_PLACE: Final = re.compile(rb"%\((\w+)\)s")
_PREPARE_AFTER: Final = 3


def _text(value: str) -> bytes:
    if "\0" in value:
        # libpq would send what stands before it.
        raise psycopg.DataError("text cannot hold a NUL character")
    return str.encode(value)


class _ByType(dict[type, T]):
    """What holds for a type holds for its subclasses, as an enumeration of a user's."""

    def __missing__(self, kind: type) -> T:
        for base in kind.__mro__[1:]:
            if base in self:
                self[kind] = self[base]
                return self[kind]
        raise TypeError(f"a parameter of type {kind.__qualname__} cannot be sent")


_ENCODERS: Final[_ByType[Callable[[Any], bytes | None]]] = _ByType(
    {
        type(None): lambda _: None,
        str: _text,
        bytes: bytes,
        bool: lambda truth: b"t" if truth else b"f",
        int: lambda number: b"%d" % number,
        float: lambda number: float.__repr__(number).encode(),
        datetime: lambda moment: moment.isoformat().encode(),
        Packed: lambda packed: packed.binary(),
    }
)
_FORMATS: Final[_ByType[Format]] = _ByType(
    {kind: Format.BINARY if kind in {bytes, Packed} else Format.TEXT for kind in _ENCODERS}
)


class Text(NamedTuple):
    """A statement as the server takes it, and its parameters in order."""

    text: bytes
    names: tuple[str, ...]
    prepared: bytes


@cache
def text_of(name: str, schema: str) -> Text:
    """queries/NAME.sql with numbered places instead of named ones."""
    named = statement(name, schema)
    names = list(dict.fromkeys(found.decode() for found in _PLACE.findall(named)))
    numbered = _PLACE.sub(lambda found: b"$%d" % (names.index(found[1].decode()) + 1), named)
    return Text(numbered, tuple(names), f"duly_{name}".encode())


class Direct:
    """One connection, without the driver's cursors: one statement at a time, sent and then fetched."""

    def __init__(self, connection: PatientConnection) -> None:
        self._connection = connection
        self._used: dict[bytes, int] = {}
        self._prepared: set[bytes] = set()
        self._transformer = Transformer(connection)
        self._poll = select.poll()
        self._sent = False

    def send(self, text: Text, parameters: Mapping[str, Any], silence: float) -> None:
        """Start a statement; `fetch` must follow. Closes the connection when the server reads nothing for so long."""
        pgconn = self._connection.pgconn
        given = [parameters[name] for name in text.names]
        values = [_ENCODERS[type(value)](value) for value in given]
        formats = [_FORMATS[type(value)] for value in given]
        used = self._used[text.prepared] = self._used.get(text.prepared, 0) + 1
        if self._connection.prepare_threshold is None or used <= _PREPARE_AFTER:
            pgconn.send_query_params(text.text, values, None, formats, Format.BINARY)
        else:
            if text.prepared not in self._prepared:
                pgconn.send_prepare(text.prepared, text.text)
                try:
                    self._fetch(silence)
                except psycopg.errors.DuplicatePreparedStatement:
                    # The name says which text it is. The error has ended the transaction: the caller repeats it.
                    self._prepared.add(text.prepared)
                    raise
                self._prepared.add(text.prepared)
            pgconn.send_query_prepared(text.prepared, values, formats, Format.BINARY)
        self._sent = True
        self._flush(pgconn, silence)

    def settle(self, silence: float) -> None:
        """Read what was sent and not fetched, whatever it says."""
        if self._sent and not self._connection.closed:
            with suppress(psycopg.Error):
                self._fetch(silence)

    def fetch(self, silence: float) -> list[Row]:
        """The rows of what was sent. Closes the connection after so many seconds without a byte."""
        result = self._fetch(silence)
        if result.status != ExecStatus.TUPLES_OK:
            return []
        self._transformer.set_pgresult(result, set_loaders=True, format=Format.BINARY)
        rows = self._transformer.load_rows(0, result.ntuples, tuple)
        self._transformer.set_pgresult(None)
        return rows

    def _flush(self, pgconn: PGconn, silence: float) -> None:
        while pgconn.flush():
            if self._ready(pgconn, select.POLLIN | select.POLLOUT, silence) & ~select.POLLOUT:
                pgconn.consume_input()

    def _fetch(self, silence: float) -> PGresult:
        pgconn = self._connection.pgconn
        self._flush(pgconn, silence)
        results: list[PGresult] = []
        self._sent = False
        while True:
            while pgconn.is_busy():
                self._ready(pgconn, select.POLLIN, silence)
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is None:
                break
            results.append(result)
        # A commit that failed comes after the rows.
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                error = error_from_result(result, encoding="utf-8")
                if error.sqlstate == UNPREPARED:
                    self._prepared.clear()
                raise error
        return results[-1]

    def _ready(self, pgconn: PGconn, events: int, silence: float) -> int:
        """Wait for the socket. What interrupts us in the middle of a statement costs the connection."""
        try:
            self._poll.register(pgconn.socket, events)
            ready = self._poll.poll(silence * 1000)
        except BaseException:
            pgconn.finish()
            raise
        if not ready:
            pgconn.finish()
            raise psycopg.OperationalError(f"the server said nothing for {silence:g} s")
        return ready[0][1]
