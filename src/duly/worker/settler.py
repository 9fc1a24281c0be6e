"""Settling: what a dead child left behind is written in its name, and its jobs go back, at once.

One thread with a connection of its own; it tries until the store answers. Knows no process.
"""

import queue
import random
import threading
from collections.abc import Callable, Sequence
from typing import Final

from duly.core.job import Ended, JobId
from duly.stores.faults import DataFault, Transient
from duly.stores.protocol import Store
from duly.telemetry.events import AcksUnwritten, DutyFailed, EndsRefused, Recovered, StoreAway
from duly.telemetry.hub import Hub
from duly.worker.badrows import find_bad, poorer
from duly.worker.family import Estate

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0

Settled = Callable[[Estate, bool], None]


class Settler:
    """Estates are settled in order. `on_settled(estate, done)` is called from its thread."""

    def __init__(self, store: Store, hub: Hub, on_settled: Settled) -> None:
        self._store = store
        self._hub = hub
        self._on_settled = on_settled
        self._estates: queue.SimpleQueue[Estate | None] = queue.SimpleQueue()
        self._hurry = threading.Event()
        self._open = 0
        self._thread = threading.Thread(target=self._run, name="duly-settler", daemon=True)
        self._thread.start()

    @property
    def idle(self) -> bool:
        return self._open == 0

    def settle(self, estate: Estate) -> None:
        self._open += 1
        self._estates.put(estate)

    def stop(self, timeout: float) -> None:
        """Finish what is waiting, for at most `timeout` seconds; what is left comes back with its lease."""
        self._estates.put(None)
        self._thread.join(timeout)
        self._hurry.set()
        self._thread.join(1)

    def _run(self) -> None:
        while (estate := self._estates.get()) is not None:
            done = False
            try:
                done = self._until_done(estate)
            except Exception as failure:
                self._hub.emit(DutyFailed("settling", f"{type(failure).__name__}: {failure}"))
            self._on_settled(estate, done)
            self._open -= 1

    def _until_done(self, estate: Estate) -> bool:
        pause = _FIRST_PAUSE
        while not self._hurry.is_set():
            try:
                self._write(estate)
                return True
            except Transient as fault:
                if pause == _FIRST_PAUSE:
                    self._hub.emit(StoreAway("settling", str(fault)))
            self._hurry.wait(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 2, _LONGEST_PAUSE)
        held = (*(JobId(end.id) for end in estate.ends), *(id for id, _ in estate.started))
        if held:
            self._hub.emit(AcksUnwritten(held, "the store did not answer until the worker had to end"))
        return False

    def _write(self, estate: Estate) -> None:
        if estate.ends:
            self._write_ends(estate, estate.ends)
        moved = self._store.leases.disown(estate.incarnation, estate.started, estate.reason, estate.poison)
        if moved:
            lost = len(estate.started)
            self._hub.emit(Recovered(moved, f"process {estate.pid}: {estate.reason}; {lost} had started"))

    def _write_ends(self, estate: Estate, ends: Sequence[Ended]) -> None:
        def write(batch: Sequence[Ended]) -> None:
            acked = self._store.jobs.exchange(estate.incarnation, batch, None).acked
            if refused := tuple(end.id for end in batch if (end.id, end.run) not in acked):
                self._hub.emit(EndsRefused(refused, estate.pid))

        def weaken(end: Ended, fault: DataFault) -> None:
            less = poorer(end, str(fault))
            if less is not None:
                self._write_ends(estate, [less])

        try:
            write(ends)
        except DataFault as fault:
            find_bad(ends, fault, write, weaken)
