"""Back pressure on SQLite: how full queues and the file are, and the shedding of what is too much."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from duly.core.bounds import SAMPLE_AGE, Fill
from duly.core.budget import Rank, StoreUse
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

    def use(self) -> StoreUse:
        now = self._database.now()
        if self._measured is not None and 0 <= now - self._measured[0] < span(SAMPLE_AGE):
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


def _shed(session: Session, queue: int, most: int, reason: str) -> int:
    waiting = [waiting_of(row) for row in session.rows("select_least_urgent", queue=queue, most=most)]
    session.many("delete_ready", [{"id": one.id} for one in waiting])
    stored = jobs_of(session, [one.id for one in waiting])
    moves = Moves(session)
    for one in waiting:
        moves.finished(subject_of(one, stored[one.id]), State.shed, reason=reason)
    settle(session, moves)
    return len(waiting)
