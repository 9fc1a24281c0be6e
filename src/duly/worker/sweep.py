"""Sweep: orphans, overdue attempts, expired and parked jobs, and the tasks that wait for a worker that knows them."""

from collections.abc import Callable, Collection
from datetime import timedelta

from duly.core.defaults import UNKNOWN_AFTER
from duly.stores.faults import Full
from duly.stores.protocol import UpkeepStore
from duly.telemetry.events import JobsShed, Recovered
from duly.telemetry.hub import Hub
from duly.telemetry.moves import JobsAbandoned, JobsExpired, JobsUnblocked
from duly.worker.budget import StoreBudget


class Sweep:
    """The store decides how often it really sweeps; this asks about once a second."""

    name = "sweep"

    def __init__(
        self,
        upkeep: UpkeepStore,
        poison: int,
        grace: float,
        every: float,
        ring: Callable[[], None],
        hub: Hub,
        budget: StoreBudget | None = None,
    ) -> None:
        self._upkeep = upkeep
        self._poison = poison
        self._grace = timedelta(seconds=grace)
        self._every = every
        self._ring = ring
        self._hub = hub
        self._budget = budget

    def run(self, now: float) -> float:
        try:
            swept = self._upkeep.sweep(UNKNOWN_AFTER, self._poison, self._grace)
        except Full:
            # Then room is needed the most.
            if self._budget is not None:
                self._budget.look()
            raise
        if swept.orphans:
            self._hub.emit(Recovered(swept.orphans, "no worker row was left for them"))
        if swept.overdue:
            self._hub.emit(Recovered(swept.overdue, "their attempts ran past their deadline"))
        if swept.shed:
            self._hub.emit(JobsShed(swept.shed))
        if swept.expired:
            self._hub.emit(JobsExpired(swept.expired))
        if swept.abandoned:
            self._hub.emit(JobsAbandoned(swept.abandoned))
        if swept.unparked and self._hub.details:
            self._hub.emit(JobsUnblocked(swept.unparked))
        if swept.orphans or swept.overdue or swept.unparked or swept.stragglers:
            self._ring()
        if swept.ran and self._budget is not None:
            self._budget.look()
        return self._every

    def failed(self) -> None:
        """Nothing to forget."""


class Parked:
    """Finds the tasks of this process that other workers have set aside as unknown."""

    name = "parked tasks"

    def __init__(
        self,
        upkeep: UpkeepStore,
        known: Collection[str],
        every: float,
        tell: Callable[[tuple[str, ...]], None],
    ) -> None:
        self._upkeep = upkeep
        self._known = known
        self._every = every
        self._tell = tell

    def run(self, now: float) -> float:
        self._tell(tuple(name for name in self._upkeep.parked_tasks() if name in self._known))
        return self._every

    def failed(self) -> None:
        """Nothing to forget."""
