"""UpkeepStore on PostgreSQL: promotion, the sweep, retention.

Knows when a scan may start behind dead entries; what is done in each step is a function's.
"""

import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

from duly.core.defaults import PURGE_NOTICE
from duly.core.operating import TALLY_LAG
from duly.stores.postgres.batching import follow_soon
from duly.stores.postgres.columns import queue_key, seconds, utc
from duly.stores.postgres.database import Database
from duly.stores.postgres.pool import Link
from duly.stores.protocol import Swept

_CHUNK: Final = 5_000
_MET: Final = 1_000
_LAG: Final = timedelta(seconds=2)
"""How far behind the clock the start of a promotion stays: for transactions that are just committing."""


class PostgresUpkeep:
    """See `UpkeepStore`."""

    def __init__(
        self,
        database: Database,
        stragglers: Callable[[], int],
        duties: Mapping[str, Callable[[], object]] = MappingProxyType({}),
    ) -> None:
        """`duties`, by their names in due_beside_1, are done by whoever has swept, each in a transaction of its own."""
        self._database = database
        self._stragglers = stragglers
        self._duties = duties

    def promote(self, most: int = 1000) -> tuple[int, timedelta | None]:
        with self._database.pool.link() as link:
            start = _due_from(link)
            parameters = {"most": min(most, _CHUNK), "from": start, "now": self._database.now()}
            began = time.monotonic()
            rows = self._database.call_on(link, "promote_jobs", parameters)
            ready, _, taken, last, next_in = rows[0]
            _learn_due(link, taken, last, full=start is None, cost=time.monotonic() - began)
        if taken > ready:
            # The others were expired or cancelled.
            follow_soon(self._database)
        return taken, None if next_in is None else timedelta(seconds=max(next_in, 0.0))

    def sweep(self, unknown_after: timedelta, poison: int, grace: timedelta) -> Swept:
        parameters = {
            "unknown_after": seconds(unknown_after),
            "poison": poison,
            "grace": seconds(grace),
            "lag": seconds(TALLY_LAG),
            "now": self._database.now(),
        }
        ran, expired, orphans, overdue, abandoned, unparked, shed, due = self._database.call(
            "sweep_jobs", parameters
        )[0]
        if not ran:
            return Swept(ran=False)
        for name, duty in self._duties.items():
            if name in due:
                duty()
        return Swept(
            expired=expired,
            orphans=orphans,
            overdue=overdue,
            abandoned=abandoned,
            unparked=unparked,
            shed=shed,
            stragglers=self._stragglers(),
        )

    def parked_tasks(self) -> tuple[str, ...]:
        return tuple(row[0] for row in self._database.call("read_parked_tasks"))

    def retain(
        self,
        keep: Mapping[str, timedelta],
        keep_dead: Mapping[str, timedelta],
        default: timedelta,
        default_dead: timedelta,
        most: int = 2000,
    ) -> int:
        parameters = {
            **_kept(keep),
            "default": seconds(default),
            "dead_keys": [queue_key(name) for name in keep_dead],
            "dead_keep": [seconds(span) for span in keep_dead.values()],
            "dead_default": seconds(default_dead),
            "notice": seconds(PURGE_NOTICE),
            "most": min(most, _CHUNK),
            "now": self._database.now(),
        }
        return int(self._database.call("retain_jobs", parameters)[0][0])

    def announce_dead(
        self, keep_dead: Mapping[str, timedelta], default_dead: timedelta, ahead: timedelta
    ) -> list[tuple[str, int, datetime]]:
        parameters = {
            **_kept(keep_dead),
            "default": seconds(default_dead),
            "ahead": seconds(ahead),
            "notice": seconds(PURGE_NOTICE),
            "now": self._database.now(),
        }
        rows = self._database.call("announce_dead", parameters)
        return [(queue, letters, utc(purged_from)) for queue, letters, purged_from in rows]


def _kept(keep: Mapping[str, timedelta]) -> dict[str, Any]:
    return {"keys": [queue_key(name) for name in keep], "keep": [seconds(span) for span in keep.values()]}


def _due_from(link: Link) -> datetime | None:
    """Where to start: from the very front, unless this connection has met many dead entries there a moment ago."""
    if link.due_met < _MET or time.monotonic() >= link.due_full_at:
        return None
    return link.due_mark


def _learn_due(link: Link, taken: int, last: datetime | None, *, full: bool, cost: float) -> None:
    link.due_met += taken
    if last is not None:
        link.due_mark = utc(last) - _LAG
    if full:
        link.due_full_at = time.monotonic() + max(1.0, 20 * cost)
