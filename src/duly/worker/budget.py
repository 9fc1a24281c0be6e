"""Makes room in a store near its budget: records of queues that are refused go early; beyond it jobs are shed.

Runs with the sweep, so once a second for the whole fleet. Never sheds a job of the most important queues, one that
runs, or one of a queue that does not shed; never touches a dead letter before its time.
"""

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
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
from duly.stores.faults import Full
from duly.stores.protocol import Store
from duly.telemetry.events import JobsShed, RecordsDropped, StoreFilling
from duly.telemetry.hub import Hub

LEAST_KEPT: Final = timedelta(seconds=2)
"""A finished job is kept at least so long, whatever the store needs: somebody may wait for its result."""
_SHED_AT_ONCE: Final = 1000
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
        clock: Callable[[], float] = time.monotonic,
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
        self._chunk = _CHUNK
        self._clock = clock
        self._sheds_from = 0.0

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
        made = self._drop_records([rank.queue for rank in use.ranks if rank.importance in now_refused])
        self._making_room = making_room(filled, self._making_room)
        # A job is lost only where no record is left that could go instead.
        if self._making_room and not made:
            self._shed([rank.queue for rank in giving_way(use.ranks) if rank.sheds])

    def _drop_records(self, queues: list[str]) -> bool:
        """Delete finished jobs of these queues before their time, the oldest first. Whether that makes room for now."""
        early = {queue: min(LEAST_KEPT, self._keep.get(queue, self._default)) for queue in queues}
        dropped, more = 0, bool(queues)
        for _ in range(_MOST_CHUNKS):
            if not more:
                break
            found, asked = self._in_small(partial(self._retain, {**self._keep, **early}))
            dropped, more = dropped + found, found == asked
        if dropped:
            self._hub.emit(RecordsDropped(dropped))
        return more or dropped >= _SHED_AT_ONCE

    def _retain(self, keep: Mapping[str, timedelta], most: int) -> int:
        return self._store.upkeep.retain(keep, self._keep_dead, self._default, self._default_dead, most)

    def _shed(self, queues: list[str]) -> None:
        # What was shed makes no room before its records are gone.
        if not queues or self._clock() < self._sheds_from:
            return
        self._sheds_from = self._clock() + LEAST_KEPT.total_seconds()
        shed, _ = self._in_small(
            lambda most: self._store.pressing.shed(queues, min(most, _SHED_AT_ONCE), STORE_FULL)
        )
        if shed:
            self._hub.emit(
                JobsShed(shed, "the store has spent its budget, and the least important queues gave way")
            )

    def _in_small(self, act: Callable[[int], int]) -> tuple[int, int]:
        """Do it to as many as the disk has space for in one transaction: (how many it was done to, of how many)."""
        while True:
            asked = self._chunk
            try:
                done = act(asked)
            except Full:
                if asked == 1:
                    raise
                self._chunk = max(1, asked // 8)
            else:
                self._chunk = min(_CHUNK, 2 * asked)
                return done, asked
