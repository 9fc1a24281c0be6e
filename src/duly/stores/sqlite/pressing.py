"""Back pressure on SQLite: how full queues are, and the shedding of what they hold above their bounds."""

from collections.abc import Mapping
from typing import Final

from duly.core.bounds import Fill
from duly.core.lifecycle import State
from duly.core.pressure import QUEUE_FULL
from duly.stores.sqlite import sampling
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.followups import settle
from duly.stores.sqlite.moves import Moves, lane_of
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.times import MICROSECOND
from duly.stores.sqlite.waiting import jobs_of, subject_of, waiting_of

# A chunk of so many moves holds the write lock for about 10 ms.
_CHUNK: Final = 500


class SQLitePressing:
    """See duly.stores.control.PressingStore. Counts in each call, which takes no lock that writers wait for."""

    def __init__(self, database: Database) -> None:
        self._database = database

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


def shed(database: Database) -> int:
    """ready -> shed for the least urgent jobs of the queues that shed and are too full, in chunks. How many went."""
    shed = 0
    with database.read() as session:
        full = bool(session.rows("select_overfull"))
    while full:
        with database.write() as session:
            # Counted again under the lock: claims may have made the room meanwhile.
            left = session.rows("select_overfull")
            shed += sum(_shed(session, queue, min(over, _CHUNK)) for queue, over in left)
        full = any(over > _CHUNK for _, over in left)
    return shed


def _shed(session: Session, queue: int, most: int) -> int:
    waiting = [waiting_of(row) for row in session.rows("select_least_urgent", queue=queue, most=most)]
    session.many("delete_ready", [{"id": one.id} for one in waiting])
    stored = jobs_of(session, [one.id for one in waiting])
    moves = Moves(session)
    for one in waiting:
        moves.finished(subject_of(one, stored[one.id]), State.shed, reason=QUEUE_FULL)
    settle(session, moves)
    return len(waiting)
