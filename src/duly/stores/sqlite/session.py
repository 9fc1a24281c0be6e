"""One open transaction and the statements that may run in it. Begins and ends nothing; knows no lock."""

import sqlite3
from collections.abc import Sequence
from typing import Any

from duly.stores.sqlite.sequence import Ahead
from duly.stores.sqlite.statements import Statements, by_position

Value = str | int | float | bytes | None
Row = tuple[Any, ...]


class Session:
    """A cursor of our own on a connection, ours or the caller's, plus the time of this transaction.

    Every answer is fetched whole: an unfinished SELECT would block commits in rollback mode.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        statements: Statements,
        now: int,
        *,
        utf8: bool = True,
        ahead: Ahead | None = None,
    ) -> None:
        # Not connection.cursor(): a subclass may hand out cursors of another kind.
        self._cursor = sqlite3.Connection.cursor(connection, sqlite3.Cursor)
        self._cursor.row_factory = None
        self._statements = statements
        self._ahead = ahead
        self._looked = False
        self.now = now
        """Microseconds since 1970 UTC, read after the lock was taken."""
        self.rings = False
        """Set when something became ready, so that workers are woken after the commit."""
        self.freed: set[int] = set()
        """Keys of limits that were given back."""
        self.batches: set[int] = set()
        """Batches whose counts have changed."""
        self.utf8 = utf8
        """Whether the file keeps text as UTF-8, so that a text cast to a blob is its bytes."""

    def rows(self, name: str, /, **values: Value) -> list[Row]:
        return self._cursor.execute(self._statements[name], values).fetchall()

    def row(self, name: str, /, **values: Value) -> Row | None:
        found = self._cursor.execute(self._statements[name], values).fetchall()
        return found[0] if found else None

    def value(self, name: str, /, **values: Value) -> Any:
        """The first column of the first row; None without one."""
        found = self.row(name, **values)
        return None if found is None else found[0]

    def run(self, name: str, /, **values: Value) -> int:
        """How many rows a write touched."""
        return self._cursor.execute(self._statements[name], values).rowcount

    def many(self, name: str, rows: Sequence[dict[str, Value]]) -> None:
        if rows:
            self._cursor.executemany(self._statements[name], rows)

    def tuples(self, name: str, rows: Sequence[Row]) -> None:
        """As `many`, with values in the order of the statement's names: bound by name they cost twice as much."""
        if rows:
            self._cursor.executemany(by_position(self._statements[name]), rows)

    def text(self, statement: str) -> None:
        """Run a statement of a migration."""
        self._cursor.execute(statement)

    def one(self, name: str, row: Row) -> None:
        """As `tuples`, for a single row."""
        self._cursor.execute(by_position(self._statements[name]), row)

    def numbers(self, count: int) -> int:
        """Take `count` numbers of the one sequence for ids and positions; the first of them."""
        ahead = self._ahead
        if ahead is None:
            return self._advance(count) - count + 1
        if not self._looked:
            ahead.look(self.value("pragma_data_version"))
            self._looked = True
        return ahead.take(count, self._advance)

    def last_number(self) -> int:
        """A number that none given out so far is above, and each one given out from now on is."""
        if self._ahead is not None:
            self._ahead.drop()
        return int(self.value("select_seq"))

    def _advance(self, count: int) -> int:
        return int(self.value("update_seq", count=count))

    def close(self) -> None:
        self._cursor.close()
