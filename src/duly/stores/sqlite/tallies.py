"""Counts over time: the TallyStore on SQLite. What ended is counted without a lock, and added under it, once."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from msgspec import json

from duly.core.operating import TALLY_CHUNK, TALLY_HOURS, TALLY_LAG, TALLY_MINUTES, Tally
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.session import Row, Value
from duly.stores.sqlite.times import from_micros, maybe_from_micros, span, to_micros
from duly.stores.tallies import Grain, tally_of

_NAME: Final = "tally"
_MINUTE: Final = 60_000_000
_HOUR: Final = 60 * _MINUTE
_SPANS: Final = {"minute": 1, "hour": 60}
_LAST: Final = 2**63 - 1
_COLUMNS: Final = (
    "at", "queue", "task", "completed", "skipped", "dead", "cancelled", "shed", "failed", "lost", "timeout",
    "redelivered", "redriven", "suppressed", "waited", "ran",
)  # fmt: skip


class SQLiteTallies:
    """See duly.stores.tallies.TallyStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def fold(self) -> int:
        with self._database.read() as session:
            row = session.row("select_sweep", name=_NAME)
            seen = None if row is None else row[0]
            over = _floor(session.now - span(TALLY_LAG), _MINUTE)
            oldest = over - span(TALLY_MINUTES if seen is None else TALLY_HOURS)
            since = oldest if seen is None else max(seen, oldest)
        until = min(over, since + span(TALLY_CHUNK))
        if until <= since:
            return 0
        parts = self._parts(since, until)
        with self._database.write() as session:
            if session.run("upsert_sweep", name=_NAME, now=until, position=0, seen=seen) == 0:
                return 0
            session.many("upsert_tally", [*_folded(parts, 1, _MINUTE), *_folded(parts, 60, _HOUR)])
            session.run("delete_old_tallies", span=1, before=over - span(TALLY_MINUTES))
            session.run("delete_old_tallies", span=60, before=over - span(TALLY_HOURS))
        return (until - since) // _MINUTE

    def _parts(self, since: int, until: int) -> list[Row]:
        """Minute by minute: a long read keeps writers from committing in rollback mode."""
        parts: list[Row] = []
        for minute in range(since, until, _MINUTE):
            with self._database.read() as session:
                parts += session.rows("select_tally_parts", since=minute, until=minute + _MINUTE)
        return parts

    def read(
        self,
        by: Grain,
        since: datetime,
        until: datetime | None = None,
        *,
        queues: Sequence[str] | None = None,
        tasks: Sequence[str] | None = None,
    ) -> list[Tally]:
        with self._database.read() as session:
            rows = session.rows(
                "select_tallies",
                span=_SPANS[by],
                since=to_micros(since),
                until=_LAST if until is None else to_micros(until),
                queues=_names(queues),
                tasks=_names(tasks),
            )
        return [_tally(row) for row in rows]

    def counted(self) -> datetime | None:
        with self._database.read() as session:
            row = session.row("select_sweep", name=_NAME)
        return maybe_from_micros(None if row is None else row[0])


def _floor(moment: int, grain: int) -> int:
    return moment - moment % grain


def _folded(parts: Iterable[Row], minutes: int, grain: int) -> list[dict[str, Value]]:
    return [
        {"span": minutes, **dict(zip(_COLUMNS, row, strict=True)), "at": _floor(row[0], grain)}
        for row in parts
    ]


def _names(names: Sequence[str] | None) -> str | None:
    return None if names is None else json.encode([*names]).decode()


def _tally(row: Row) -> Tally:
    at, queue, task, *counts, waited, ran = row
    return tally_of(queue, task, from_micros(at), counts, waited, ran)
