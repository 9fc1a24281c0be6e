"""Jobs under keys of names that are not ours: the first release made other ones, and may still be running.

Ours never look into its lanes; the sweep moves what waits there, and keeps the order within a lane.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from duly.stores.sqlite.database import Database
from duly.stores.sqlite.moves import Values, lane_of, task_key
from duly.stores.sqlite.session import Row, Session
from duly.stores.sqlite.waiting import PAUSED, UNKNOWN

_CHUNK: Final = 500


def rekey(database: Database) -> None:
    """Move waiting jobs to where the keys of their names lead. Takes the write lock only for those it finds."""
    with database.read() as session:
        lanes = [lane for lane, queue in session.rows("select_lanes") if not _is_lane(lane, queue)]
        parked = [
            (cause, task)
            for cause in (UNKNOWN, PAUSED)
            for task, name in session.rows("select_parked_tasks", cause=cause)
            if name is not None and task != task_key(name)
        ]
    for lane in lanes:
        _in_chunks(database, partial(_move_lane, lane=lane))
    for cause, task in parked:
        _in_chunks(database, partial(_move_parked, cause=cause, task=task))


def _is_lane(lane: int, queue: str | None) -> bool:
    return queue is None or lane in {lane_of(queue, False), lane_of(queue, True)}


def _in_chunks(database: Database, step: Callable[[Session], int]) -> None:
    moved = _CHUNK
    while moved == _CHUNK:
        with database.write() as session:
            moved = step(session)


def _move_lane(session: Session, lane: int) -> int:
    rows = session.rows("select_lane_jobs", lane=lane, most=_CHUNK)
    session.many("update_ready_keys", [*map(_keys, rows)])
    session.rings = bool(rows)
    return len(rows)


def _move_parked(session: Session, cause: int, task: int) -> int:
    rows = session.rows("select_task_jobs", cause=cause, task=task, most=_CHUNK)
    session.many("update_blocked_keys", [*map(_keys, rows)])
    return len(rows)


def _keys(row: Row) -> Values:
    id, lost, queue, task = row
    return {"id": id, "queue": lane_of(queue, lost > 0), "task": task_key(task)}
