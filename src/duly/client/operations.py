"""Moves stored bulk acts forward, a stretch at a time, at the rate they were given.

Called by every worker's upkeep. Several at once do no harm: a job is moved once, and the stored cursor decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from duly.client.selection import VERBS, Step, search
from duly.core.job import JobId
from duly.stores.protocol import OperationRecord, Store

LONGEST_GAP: Final = 10.0
"""Seconds after which a rate starts anew: what was missed in a pause or an outage is not made up in one burst."""


class _Start(NamedTuple):
    at: float
    handled: int
    last: float


class Pace:
    """What one process has seen of the running operations, to keep each at its rate.

    Counts what all workers handled together, so that two of them are not twice as fast.
    """

    def __init__(self) -> None:
        self._starts: dict[int, _Start] = {}

    def allowed(self, operation: OperationRecord, limit: int, now: float) -> int:
        """How many jobs may be moved at this moment; `now` is monotonic."""
        if operation.rate is None:
            return limit
        handled = operation.done + operation.skipped
        start = self._starts.get(operation.id)
        if start is None or now - start.last > LONGEST_GAP:
            start = _Start(now, handled, now)
            # One job at once, so that a rate below one per call moves at all.
            allowed = 1
        else:
            allowed = int((now - start.at) * operation.rate) + 1 - (handled - start.handled)
        self._starts[operation.id] = start._replace(last=now)
        return max(0, min(limit, allowed))

    def forget_others(self, running: set[int]) -> None:
        """A paused operation starts anew when it is resumed."""
        self._starts = {id: start for id, start in self._starts.items() if id in running}


_shared: Final = Pace()


def advance(
    store: Store, limit: int = 1000, pace: Pace = _shared, clock: Callable[[], float] = time.monotonic
) -> int:
    """Move every running operation forward by at most `limit` jobs each; how many jobs were moved.

    Blocks for a few round trips. Safe to repeat after any fault: a job that was moved is not moved again.
    """
    # The verb of a newer release is left to workers that know it.
    running = [
        record
        for record in store.inspection.operations()
        if record.state == "running" and record.verb in VERBS
    ]
    pace.forget_others({record.id for record in running})
    now = clock()
    return sum(_advance(store, record, pace.allowed(record, limit, now)) for record in running)


def _advance(store: Store, operation: OperationRecord, most: int) -> int:
    if most == 0:
        return 0
    stretch = _search(store, operation, operation.cursor, most)
    if stretch.ids or not stretch.ended:
        # Reserved before it is moved: of two workers one wins, and each job is counted once.
        if not store.operator.advance_operation(operation.id, stretch.cursor, len(stretch.ids), 0, False):
            return 0
        return len(_act(store, operation, list(stretch.ids)))
    moved, stays = _move_left(store, operation, most)
    if moved:
        return moved
    gone = max(0, operation.total - operation.done - operation.skipped)
    # A cursor only moves upwards, at the end as well. What was reserved and stays was counted too early.
    store.operator.advance_operation(
        operation.id, max(operation.upto, operation.cursor + 1), -stays, gone + stays, True
    )
    return 0


def _move_left(store: Store, operation: OperationRecord, most: int) -> tuple[int, int]:
    """(moved, stay): what a worker reserved before it died is still where it was.

    What cannot be moved, as a letter whose unique key another job has, does not keep the operation from its end.
    """
    cursor = stays = 0
    while True:
        stretch = _search(store, operation, cursor, most)
        if moved := _act(store, operation, list(stretch.ids)):
            return len(moved), 0
        if stretch.ids:
            # Another worker may have moved them just now.
            stays += len({*stretch.ids}.intersection(_search(store, operation, cursor, most).ids))
        if stretch.ended:
            return 0, min(stays, operation.done)
        cursor = stretch.cursor


def _search(store: Store, operation: OperationRecord, cursor: int, most: int) -> Step:
    # A job that died again since then belongs to the next act, not to this one.
    return search(
        store.inspection, operation.verb, operation.filter, cursor, operation.upto, most, operation.created_at
    )


def _act(store: Store, operation: OperationRecord, ids: list[JobId]) -> list[JobId]:
    if not ids:
        return []
    by, reason = operation.by, operation.reason
    match operation.verb:
        case "redrive":
            return store.operator.redrive(ids, by, reason, operation.priority)
        case "purge":
            return store.operator.purge(ids, by, reason)
        case _:
            return list(store.operator.cancel(ids, by, reason))
