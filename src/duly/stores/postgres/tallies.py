"""Counts over time: the TallyStore on PostgreSQL. What is counted, and from where, is a function's to say."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from duly.core.operating import TALLY_CHUNK, TALLY_HOURS, TALLY_LAG, TALLY_MINUTES, Tally
from duly.stores.postgres.columns import seconds, utc, utc_or_none
from duly.stores.postgres.database import Database, Row
from duly.stores.tallies import Grain, tally_of

_SPANS: Final = {"minute": 1, "hour": 60}


class PostgresTallies:
    """See duly.stores.tallies.TallyStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def fold(self) -> int:
        parameters = {
            "lag": seconds(TALLY_LAG),
            "minutes": seconds(TALLY_MINUTES),
            "hours": seconds(TALLY_HOURS),
            "chunk": seconds(TALLY_CHUNK),
            "now": self._database.now(),
        }
        return int(self._database.call("fold_tally", parameters)[0][0])

    def read(
        self,
        by: Grain,
        since: datetime,
        until: datetime | None = None,
        *,
        queues: Sequence[str] | None = None,
        tasks: Sequence[str] | None = None,
    ) -> list[Tally]:
        parameters = {
            "span": _SPANS[by],
            "since": since,
            "until": until,
            "queues": None if queues is None else [*queues],
            "tasks": None if tasks is None else [*tasks],
        }
        return [_tally(row) for row in self._database.call("read_tallies", parameters)]

    def counted(self) -> datetime | None:
        return utc_or_none(self._database.call("read_tallied")[0][0])


def _tally(row: Row) -> Tally:
    at, queue, task, *counts, waited, ran = row
    return tally_of(queue, task, utc(at), counts, waited, ran)
