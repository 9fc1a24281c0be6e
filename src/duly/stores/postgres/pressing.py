"""How full queues and the store are, on PostgreSQL: sampled once a second for all producers together. Decides nothing.

The free disk of the server is not known: a database cannot be asked for it, and the server may be another machine.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from duly.core.bounds import SAMPLE_AGE, Fill, Pressure, bound_of
from duly.core.budget import Rank, StoreUse
from duly.core.defaults import IMPORTANCE
from duly.core.lateness import Crossing
from duly.stores.postgres.columns import queue_key, seconds, utc
from duly.stores.postgres.database import Database


class PostgresPressing:
    """See duly.stores.control.PressingStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def fills(self, queues: Mapping[str, int]) -> dict[str, Fill]:
        names = {queue_key(name): name for name in queues}
        parameters = {"keys": [*names], "most": [*queues.values()], "now": self._database.now()}
        return {
            names[key]: Fill(
                depth, None if oldest is None else timedelta(seconds=max(oldest, 0.0)), out_per_s, at
            )
            for key, depth, oldest, out_per_s, at in self._database.call("read_fills", parameters)
        }

    def turned_away(self, refused: Mapping[str, int]) -> None:
        parameters = {
            "keys": [queue_key(name) for name in refused],
            "jobs": [*refused.values()],
            "now": self._database.now(),
        }
        self._database.call("turn_away", parameters)

    def pressures(self, queues: Sequence[str]) -> dict[str, Pressure]:
        rows = self._database.call("read_pressures", {"queues": [*queues], "now": self._database.now()})
        return {
            name: Pressure(
                bound_of(depth, None if age is None else timedelta(seconds=age), when_full),
                IMPORTANCE if importance is None else importance,
                None if target is None else timedelta(seconds=target),
                refused or 0,
                None if refused_at is None else utc(refused_at),
                shed or 0,
                None if shed_at is None else utc(shed_at),
            )
            for name, depth, age, when_full, importance, target, refused, refused_at, shed, shed_at in rows
        }

    def crossings(self) -> list[Crossing]:
        rows = self._database.call("read_crossings", {"now": self._database.now()})
        return [
            Crossing(
                queue,
                late,
                None if target is None else timedelta(seconds=target),
                None if oldest is None else timedelta(seconds=max(oldest, 0.0)),
            )
            for queue, late, target, oldest in rows
        ]

    def use(self, age: timedelta = SAMPLE_AGE) -> StoreUse | None:
        rows = self._database.call("read_use", {"age": seconds(age), "now": self._database.now()})
        if not rows:
            return None
        ranks = (Rank(name, importance, sheds) for _, name, importance, sheds in rows if name is not None)
        return StoreUse(rows[0][0], ranks=tuple(sorted(ranks, key=lambda rank: rank.queue)))

    def uses(self, within: timedelta) -> list[tuple[datetime, StoreUse]]:
        parameters = {"within": seconds(within), "now": self._database.now()}
        return [(utc(at), StoreUse(used)) for at, used in self._database.call("read_uses", parameters)]

    def shed(self, queues: Sequence[str], most: int, reason: str) -> int:
        parameters = {
            "keys": [queue_key(name) for name in queues],
            "most": most,
            "reason": reason,
            "now": self._database.now(),
        }
        return int(self._database.call("shed_ready", parameters)[0][0])
