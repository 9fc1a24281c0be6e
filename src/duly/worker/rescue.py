"""Rescue: watch the heartbeats of all workers and give the jobs of dead ones back."""

from collections.abc import Callable

from duly.core.job import Incarnation
from duly.core.leases import Watch
from duly.stores.protocol import LeaseStore
from duly.telemetry.events import Recovered
from duly.telemetry.hub import Hub
from duly.worker.board import boottime


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
        if overdue and self._was_held_up():
            self._watch.interrupted()
        elif overdue:
            moved = self._leases.reap(overdue, self._poison)
            names = ", ".join(str(beat.incarnation) for beat in overdue)
            if moved:
                self._hub.emit(Recovered(moved, f"the heartbeat of incarnation {names} stood still"))
                self._on_moved()
        return self._every

    def _was_held_up(self) -> bool:
        """Whether a write of our own had to wait: then the heartbeats of the others had to wait as well."""
        sent_at = boottime()
        self._leases.beat([self._mine])
        return boottime() - sent_at > self._every / 2

    def failed(self) -> None:
        self._watch.interrupted()
