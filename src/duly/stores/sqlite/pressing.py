"""Back pressure on SQLite: sheds what a queue holds above its bound. Knows neither producers nor the other policies."""

from typing import Final

from duly.core.lifecycle import State
from duly.core.pressure import QUEUE_FULL
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.moves import Moves
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.waiting import jobs_of, subject_of, waiting_of

# A chunk of so many moves holds the write lock for about 10 ms.
_CHUNK: Final = 500


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
    moves.flush()
    return len(waiting)
