"""Retention: finished jobs go after their time, in paced chunks; dead letters are announced a week before."""

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from duly.client.queue import Queue
from duly.core.defaults import PURGE_NOTICE
from duly.stores.protocol import UpkeepStore
from duly.telemetry.events import DeadLettersExpire
from duly.telemetry.hub import Hub

_EVERY: Final = 60.0
_BETWEEN_CHUNKS: Final = (0.02, 5.0)
# A pause of so many times what the chunk took: a third of one connection keeps up with what a busy worker finishes.
_PAUSES: Final = 2.0
_ANNOUNCE_EVERY: Final = 3600.0


class Retention:
    """One chunk per run; a full backlog is worked off in small steps, so that the store stays free for jobs."""

    name = "retention"

    def __init__(
        self,
        upkeep: UpkeepStore,
        queues: Mapping[str, Queue],
        keep: timedelta,
        keep_dead: timedelta,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._upkeep = upkeep
        self._keep = {name: queue.keep for name, queue in queues.items() if queue.keep is not None}
        self._keep_dead = {
            name: queue.keep_dead for name, queue in queues.items() if queue.keep_dead is not None
        }
        self._default = keep
        self._default_dead = keep_dead
        self._clock = clock

    def run(self, now: float) -> float:
        began = self._clock()
        if not self._upkeep.retain(self._keep, self._keep_dead, self._default, self._default_dead):
            return _EVERY
        shortest, longest = _BETWEEN_CHUNKS
        return min(longest, max(shortest, _PAUSES * (self._clock() - began)))

    def failed(self) -> None:
        """Nothing to forget."""


class Announce:
    """Says which dead letters will be purged, to whom they belong, and marks them as announced."""

    name = "announcements"

    def __init__(
        self, upkeep: UpkeepStore, queues: Mapping[str, Queue], keep_dead: timedelta, hub: Hub
    ) -> None:
        self._upkeep = upkeep
        self._queues = queues
        self._keep_dead = {
            name: queue.keep_dead for name, queue in queues.items() if queue.keep_dead is not None
        }
        self._default = keep_dead
        self._hub = hub

    def run(self, now: float) -> float:
        for name, count, since in self._upkeep.announce_dead(self._keep_dead, self._default, PURGE_NOTICE):
            queue = self._queues.get(name)
            self._hub.emit(DeadLettersExpire(name, queue.owner if queue is not None else None, count, since))
        return _ANNOUNCE_EVERY

    def failed(self) -> None:
        """Nothing to forget."""
