"""The probe on SQLite: a file of its own beside the user's one, on the same disk and in the same journal mode.

Opens the user's file only to read its header. Everything goes over one connection, as one caller's would.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from duly.stores.probe import ROW, ROWS, SCRATCH, is_left_behind, new_name
from duly.stores.sqlite.connecting import Journal, connect, default_journal, set_journal
from duly.stores.sqlite.database import BUSY_TIMEOUT
from duly.stores.sqlite.errors import FAILURES, translate
from duly.stores.sqlite.statements import load

_VERSION_BYTE: Final = 18
_IN_WAL: Final = 2


class SQLiteProbe:
    """See `duly.stores.probe.Probe`."""

    schema = "duly"

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{new_name()}.db")
        self._journal = _journal_of(path)
        self.url = f"sqlite:///{self._path}"
        self._statements = load(self.schema)
        self._open: dict[bool, sqlite3.Connection] = {}

    def prepare(self) -> None:
        for file in self._path.parent.glob(f"{SCRATCH}*.db"):
            if is_left_behind(file.stem):
                _remove(file)
        with self._words():
            for durable in (True, False):
                self._open[durable] = connect(str(self._path), BUSY_TIMEOUT, writer=True, durable=durable)
                set_journal(self._open[durable], self._journal)
            self._open[True].execute(self._statements["create_probe"]).close()

    def round_trip(self) -> None:
        with self._words():
            self._open[True].execute(self._statements["answer_probe"]).fetchall()

    def commit(self) -> None:
        with self._words():
            self._open[True].execute(self._statements["add_probe_row"], {"payload": ROW})

    def unsynced(self) -> None:
        with self._words():
            self._open[False].execute(self._statements["add_probe_row"], {"payload": ROW})

    def bulk(self) -> int:
        with self._words(), self._open[True] as connection:
            connection.execute("begin immediate")
            connection.executemany(self._statements["add_probe_row"], [{"payload": ROW}] * ROWS)
        return ROWS

    def remove(self) -> None:
        while self._open:
            self._open.popitem()[1].close()
        _remove(self._path)

    @contextmanager
    def _words(self) -> Iterator[None]:
        """SQLite's errors in duly's words."""
        try:
            yield
        except FAILURES as error:
            raise translate(error, str(self._path)) or error from error


def _journal_of(path: Path) -> Journal:
    """The journal of the user's file; of one that is not there yet, the one it would get."""
    try:
        with path.open("rb") as file:
            header = file.read(_VERSION_BYTE + 1)
    except OSError:
        return default_journal()
    in_wal = len(header) > _VERSION_BYTE and header[_VERSION_BYTE] == _IN_WAL
    return "wal" if in_wal else default_journal()


def _remove(path: Path) -> None:
    """The file and what SQLite and the store keep beside it."""
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink(missing_ok=True)
