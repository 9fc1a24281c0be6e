"""How many processes a supervisor runs under `--processes 1..8`: looks at the queues every five seconds and decides.

A thread of its own, since a slow store must not keep the supervisor from its children. The arithmetic is core.plan's.
"""

import threading
from collections.abc import Callable, Iterable
from typing import Final

from duly.core.control import LimitRecord, queue_limit
from duly.core.plan import USUAL, Load, Scaling, Tempo, connection_room, scale
from duly.stores.faults import Transient
from duly.stores.protocol import Store, WorkerRecord
from duly.telemetry.events import DutyFailed, ProcessesScaled
from duly.telemetry.hub import Hub
from duly.worker.board import boottime

_NAME: Final = "scaling"


class Scaler:
    """Of one supervisor. `wanted` may be read from any thread."""

    def __init__(
        self,
        store: Store,
        queues: Iterable[str],
        least: int,
        most: int,
        hub: Hub,
        tempo: Tempo = USUAL,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self._store = store
        self._queues = tuple(queues)
        self._least = least
        self._most = most
        self._hub = hub
        self._tempo = tempo
        self._clock = clock
        self._memory = Scaling(least)
        self._failed = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="duly-scaling", daemon=True)

    @property
    def wanted(self) -> int:
        """So many processes should run."""
        return self._memory.wanted

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def look(self) -> None:
        """Read the queues once and decide. Transient when the store does not answer."""
        before, loads = self._memory, self._loads()
        self._memory = after = scale(
            before,
            loads,
            self._clock(),
            least=self._least,
            most=self._most,
            room=self._room(),
            tempo=self._tempo,
        )
        if after.wanted != before.wanted:
            self._hub.emit(ProcessesScaled(before.wanted, after.wanted, after.why))

    def _run(self) -> None:
        while not self._over.wait(self._tempo.every.total_seconds()):
            try:
                self.look()
            except Transient:
                # Heartbeats tell of a store that does not answer; until it does, nothing is started or stopped.
                continue
            except Exception as error:
                if not self._failed:
                    self._hub.emit(DutyFailed(_NAME, f"{type(error).__name__}: {error}"))
                self._failed = True
            else:
                self._failed = False

    def _loads(self) -> list[Load]:
        counts = {count.queue: count for count in self._store.inspection.counts()}
        workers = self._store.inspection.workers()
        busy = [name for name in self._queues if name in counts]
        pressures = self._store.pressing.pressures(busy)
        limits = {limit.name: limit for limit in self._store.control.limits([queue_limit(n) for n in busy])}
        loads = []
        for name in busy:
            count = counts[name]
            serving, sharers = _serving(name, workers)
            loads.append(
                Load(
                    name,
                    count.ready,
                    serving,
                    oldest=count.oldest_ready,
                    in_per_s=count.in_per_s,
                    out_per_s=count.out_per_s,
                    slope_per_s=count.slope_per_s,
                    wait_target=pressures[name].wait_target if name in pressures else None,
                    paused=count.paused,
                    capped=_at_cap(limits.get(queue_limit(name))),
                    sharers=sharers,
                )
            )
        return loads

    def _room(self) -> int | None:
        load = self._store.inspection.load()
        return None if load is None else connection_room(load.connections, load.most_connections)


def _serving(queue: str, workers: Iterable[WorkerRecord]) -> tuple[int, int]:
    """(processes that serve it, the supervisors that run them)."""
    serving = [worker for worker in workers if queue in worker.queues and not worker.draining]
    return len(serving), max(1, len({worker.supervisor for worker in serving}))


def _at_cap(limit: LimitRecord | None) -> bool:
    return limit is not None and limit.max_running is not None and limit.running >= limit.max_running
