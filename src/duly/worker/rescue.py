"""Rescue: watch the heartbeats of all workers and give the jobs of dead ones back."""

from collections.abc import Callable

from duly.core.job import Incarnation
from duly.core.leases import Watch
from duly.stores.protocol import LeaseStore
from duly.telemetry.events import Recovered
from duly.telemetry.hub import Hub


class Rescue:
    """Reaps only what this process itself saw standing still for a whole lease."""

    name = "rescue"

    def __init__(
        self,
        leases: LeaseStore,
        mine: Incarnation,
        every: float,
        poison: int,
        on_moved: Callable[[], None],
        hub: Hub,
    ) -> None:
        self._leases = leases
        self._mine = mine
        self._every = every
        self._poison = poison
        self._hub = hub
        self._on_moved = on_moved
        self._watch = Watch()

    def run(self, now: float) -> float:
        # Whoever beats for this process knows best whether it lives.
        beats = [beat for beat in self._leases.beats() if beat.incarnation != self._mine]
        overdue = self._watch.overdue(beats, now, 3 * self._every)
        if overdue:
            moved = self._leases.reap(overdue, self._poison)
            names = ", ".join(str(beat.incarnation) for beat in overdue)
            if moved:
                self._hub.emit(Recovered(moved, f"the heartbeat of incarnation {names} stood still"))
                self._on_moved()
        return self._every

    def failed(self) -> None:
        self._watch.interrupted()
