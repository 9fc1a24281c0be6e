"""What the rules look at, read from `inspect` alone. Decides nothing."""

from __future__ import annotations

from typing import Final

from duly.client.inspect import Inspect, QueueStatus
from duly.core.alerting import (
    BreakerSeen,
    DeadSeen,
    KeySeen,
    PurgeSeen,
    QueueSeen,
    Snapshot,
    StorageSeen,
    WorkerSeen,
)
from duly.core.filters import Filter
from duly.core.lifecycle import State
from duly.stores.protocol import WorkerRecord

_DEAR: Final = 20_000
"""With more dead letters than that their groups are counted seldom,"""
_SELDOM: Final = 60.0
_PURGES_EVERY: Final = 600.0
_KEYS: Final = 1_000
_DEAD: Final = Filter(state=State.dead)


class Looker:
    """Takes snapshots one after another. Remembers what costs too much to read each time."""

    def __init__(self, inspect: Inspect) -> None:
        self._inspect = inspect
        self._dead: tuple[DeadSeen, ...] = ()
        self._dead_at: float | None = None
        self._purges: tuple[PurgeSeen, ...] = ()
        self._purges_at: float | None = None

    def look(self, now: float) -> Snapshot:
        """One snapshot; blocks for some round trips. `now`: seconds of a clock that only goes forward."""
        inspect = self._inspect
        status = inspect.status()
        storage = inspect.storage()
        return Snapshot(
            now=status.now,
            queues=tuple(_queue(queue) for queue in status.queues),
            dead=self._groups(sum(queue.counts.dead for queue in status.queues), now),
            purges=self._purging(now),
            workers=tuple(_worker(worker) for worker in inspect.workers()),
            keys=tuple(
                KeySeen(key.queue, key.tenant, key.key, key.waiting) for key in inspect.keys(limit=_KEYS)
            ),
            breakers=tuple(
                BreakerSeen(limit.name, limit.breaker, limit.waiting)
                for limit in inspect.limits()
                if limit.breaker in ("open", "half-open")
            ),
            lost=inspect.losses(),
            storage=None if storage is None else StorageSeen(storage.text, storage.filled, storage.full_in),
        )

    def _groups(self, dead: int, now: float) -> tuple[DeadSeen, ...]:
        known = self._dead_at is not None and now - self._dead_at < _SELDOM
        if dead > _DEAR and known:
            return self._dead
        groups = self._inspect.dead_groups(_DEAD) if dead else ()
        self._dead_at = now
        self._dead = tuple(
            DeadSeen(group.queue, group.task, group.fingerprint, group.count, group.last, group.error)
            for group in groups
        )
        return self._dead

    def _purging(self, now: float) -> tuple[PurgeSeen, ...]:
        if self._purges_at is None or now - self._purges_at >= _PURGES_EVERY:
            self._purges_at = now
            self._purges = tuple(
                PurgeSeen(purge.queue, purge.count, purge.since) for purge in self._inspect.purges()
            )
        return self._purges


def _queue(status: QueueStatus) -> QueueSeen:
    counts = status.counts
    return QueueSeen(
        name=counts.queue,
        owner=status.owner,
        ready=counts.ready,
        running=counts.running,
        blocked=counts.blocked,
        oldest=counts.oldest_ready,
        in_per_s=counts.in_per_s,
        out_per_s=counts.out_per_s,
        slope_per_s=counts.slope_per_s,
        workers=status.workers,
        paused=counts.paused,
        bound=status.pressure.bound,
        wait_target=status.pressure.wait_target,
        health=status.health,
    )


def _worker(worker: WorkerRecord) -> WorkerSeen:
    queues = () if worker.draining else worker.queues
    return WorkerSeen(
        int(worker.incarnation),
        f"{worker.host}:{worker.pid}",
        queues,
        worker.running,
        worker.progress_age,
    )
