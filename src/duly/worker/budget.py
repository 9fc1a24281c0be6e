"""Makes room in a store near its budget: records of queues that are refused go early; beyond it jobs are shed.

Runs with the sweep, so once a second for the whole fleet. Never sheds a job of the most important queues, one that
runs, or one of a queue that does not shed; never touches a dead letter before its time.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from duly.client.queue import Queue
from duly.core.budget import (
    STORE_FULL,
    Budget,
    described,
    fill,
    giving_way,
    making_room,
    refused,
)
from duly.stores.protocol import Store
from duly.telemetry.events import JobsShed, RecordsDropped, StoreFilling
from duly.telemetry.hub import Hub

LEAST_KEPT: Final = timedelta(seconds=10)
"""A finished job is kept at least so long, whatever the store needs: somebody may wait for its result."""
_SHED_AT_ONCE: Final = 500
_CHUNK: Final = 2000
_MOST_CHUNKS: Final = 5


class StoreBudget:
    """What a worker does for the budget after each sweep."""

    def __init__(
        self,
        store: Store,
        budget: Budget,
        queues: Mapping[str, Queue],
        keep: timedelta,
        keep_dead: timedelta,
        hub: Hub,
    ) -> None:
        self._store = store
        self._budget = budget
        self._keep = {name: queue.keep for name, queue in queues.items() if queue.keep is not None}
        self._keep_dead = {
            name: queue.keep_dead for name, queue in queues.items() if queue.keep_dead is not None
        }
        self._default = keep
        self._default_dead = keep_dead
        self._hub = hub
        self._refused: frozenset[int] = frozenset()
        self._making_room = False

    def look(self) -> None:
        """Measure, say who is refused when that has changed, and make room."""
        use = self._store.pressing.use()
        if use is None:
            return
        filled = fill(self._budget, use)
        now_refused = refused({rank.importance for rank in use.ranks}, filled, self._refused)
        if now_refused != self._refused:
            self._refused = now_refused
            names = tuple(rank.queue for rank in use.ranks if rank.importance in now_refused)
            self._hub.emit(StoreFilling(described(self._budget, use), names))
        dropped = self._drop_records([rank.queue for rank in use.ranks if rank.importance in now_refused])
        self._making_room = making_room(filled, self._making_room)
        # A job is lost only where no record is left that could go instead.
        if self._making_room and dropped < _CHUNK:
            self._shed([rank.queue for rank in giving_way(use.ranks) if rank.sheds])

    def _drop_records(self, queues: list[str]) -> int:
        """Delete finished jobs of these queues before their time, the oldest first."""
        early = {queue: min(LEAST_KEPT, self._keep.get(queue, self._default)) for queue in queues}
        dropped, found = 0, _CHUNK if queues else 0
        for _ in range(_MOST_CHUNKS):
            if found < _CHUNK:
                break
            found = self._store.upkeep.retain(
                {**self._keep, **early}, self._keep_dead, self._default, self._default_dead, _CHUNK
            )
            dropped += found
        if dropped:
            self._hub.emit(RecordsDropped(dropped))
        return dropped

    def _shed(self, queues: list[str]) -> None:
        shed = self._store.pressing.shed(queues, _SHED_AT_ONCE, STORE_FULL) if queues else 0
        if shed:
            self._hub.emit(
                JobsShed(shed, "the store has spent its budget, and the least important queues gave way")
            )
