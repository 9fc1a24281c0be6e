"""Back pressure on SQLite: how full queues and the file are, and the shedding of what is too much."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from duly.core.bounds import SAMPLE_AGE, TURNED_AWAY, Fill, Pressure, bound_of
from duly.core.budget import Rank, StoreUse
from duly.core.defaults import IMPORTANCE
from duly.core.lateness import Crossing
from duly.core.lifecycle import State
from duly.core.pressure import QUEUE_FULL
from duly.stores.sqlite import sampling
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.followups import settle
from duly.stores.sqlite.measuring import measure
from duly.stores.sqlite.moves import Moves, lane_of
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.times import MICROSECOND, from_micros, span
from duly.stores.sqlite.waiting import jobs_of, subject_of, waiting_of

# A chunk of so many moves holds the write lock for about 10 ms.
_CHUNK: Final = 500
_REFUSED: Final = 1
_SHED: Final = 2


class SQLitePressing:
    """See duly.stores.control.PressingStore. Counts in each call, which takes no lock that writers wait for."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._measured: tuple[int, StoreUse] | None = None

    def fills(self, queues: Mapping[str, int]) -> dict[str, Fill]:
        found = {}
        with self._database.read(snapshot=True) as session:
            rates = sampling.rates(session)
            for name, most in queues.items():
                depth, oldest = session.row("select_fill", queue=lane_of(name, False), most=most) or (0, None)
                waited = None if oldest is None else max(session.now - oldest, 0) * MICROSECOND
                rate = rates.get(name)
                found[name] = Fill(depth, waited, None if rate is None else rate.outgoing)
        return found

    def turned_away(self, refused: Mapping[str, int]) -> None:
        with self._database.write() as session:
            for name, jobs in refused.items():
                _turned_away(session, lane_of(name, False), _REFUSED, jobs)

    def pressures(self, queues: Sequence[str]) -> dict[str, Pressure]:
        with self._database.read(snapshot=True) as session:
            return {name: _pressure(session, name) for name in queues}

    def crossings(self) -> list[Crossing]:
        with self._database.read(snapshot=True) as session:
            now = session.now
            seen = [
                (name, target, since, session.value("select_oldest_head", queue=key))
                for name, key, target, since in session.rows("select_targets")
            ]
        crossed = []
        for name, target, since, oldest in seen:
            late = target is not None and oldest is not None and oldest < now - target
            if late != (since is not None):
                waited = None if oldest is None else max(now - oldest, 0) * MICROSECOND
                crossed.append(Crossing(name, late, None if target is None else target * MICROSECOND, waited))
        if not crossed:
            return []
        with self._database.write() as session:
            return [
                one
                for one in crossed
                if session.run("update_late", name=one.queue, since=now if one.late else None)
            ]

    def use(self, age: timedelta = SAMPLE_AGE) -> StoreUse:
        now = self._database.now()
        if self._measured is not None and 0 <= now - self._measured[0] < span(age):
            return self._measured[1]
        with self._database.read() as session:
            ranks = tuple(
                Rank(name, importance, bool(sheds))
                for name, importance, sheds in session.rows("select_queue_ranks")
            )
            use = replace(measure(session, self._database.path), ranks=ranks)
        self._measured = (now, use)
        return use

    def uses(self, within: timedelta) -> list[tuple[datetime, StoreUse]]:
        with self._database.read() as session:
            rows = session.rows("select_store_uses", since=session.now - span(within))
        return [(from_micros(at), StoreUse(used, free_disk)) for at, used, free_disk in rows]

    def shed(self, queues: Sequence[str], most: int, reason: str) -> int:
        shed = 0
        for queue in queues:
            found = _CHUNK
            while shed < most and found == _CHUNK:
                with self._database.write() as session:
                    found = _shed(session, lane_of(queue, False), min(most - shed, _CHUNK), reason)
                shed += found
        return shed


def shed(database: Database) -> int:
    """ready -> shed for the least urgent jobs of the queues that shed and are too full, in chunks. How many went."""
    shed = 0
    with database.read() as session:
        full = bool(session.rows("select_overfull"))
    while full:
        with database.write() as session:
            # Counted again under the lock: claims may have made the room meanwhile.
            left = session.rows("select_overfull")
            shed += sum(_shed(session, queue, min(over, _CHUNK), QUEUE_FULL) for queue, over in left)
        full = any(over > _CHUNK for _, over in left)
    return shed


def _pressure(session: Session, name: str) -> Pressure:
    row = session.row(
        "select_pressure", name=name, queue=lane_of(name, False), since=session.now - span(TURNED_AWAY)
    )
    depth, age, when_full, importance, target, refused, refused_at, shed, shed_at = row or (None,) * 9
    return Pressure(
        bound_of(depth, None if age is None else age * MICROSECOND, when_full),
        IMPORTANCE if importance is None else importance,
        None if target is None else target * MICROSECOND,
        refused or 0,
        None if refused_at is None else from_micros(refused_at),
        shed or 0,
        None if shed_at is None else from_micros(shed_at),
    )


def _turned_away(session: Session, queue: int, kind: int, jobs: int) -> None:
    if jobs:
        hour = span(TURNED_AWAY)
        session.run("upsert_turned_away", queue=queue, kind=kind, jobs=jobs, now=session.now, hour=hour)


def _shed(session: Session, queue: int, most: int, reason: str) -> int:
    waiting = [waiting_of(row) for row in session.rows("select_least_urgent", queue=queue, most=most)]
    session.many("delete_ready", [{"id": one.id} for one in waiting])
    stored = jobs_of(session, [one.id for one in waiting])
    moves = Moves(session)
    for one in waiting:
        moves.finished(subject_of(one, stored[one.id]), State.shed, reason=reason)
    settle(session, moves)
    _turned_away(session, queue, _SHED, len(waiting))
    return len(waiting)
