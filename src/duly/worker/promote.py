"""Promote: what is due becomes ready, and the slots hear of it."""

from collections.abc import Callable

from duly.stores.protocol import UpkeepStore
from duly.telemetry.hub import Hub
from duly.telemetry.moves import JobsPromoted


class Promote:
    """Runs at the next due time, or after `poll` at the latest: others may schedule something sooner."""

    name = "promote"

    def __init__(
        self, upkeep: UpkeepStore, poll: float, ring: Callable[[], None], hub: Hub | None = None
    ) -> None:
        self.quiet_at = -1.0
        """When the last run began that found nothing due."""
        self.moved_at = -1.0
        """When the last run began that found something."""
        self._upkeep = upkeep
        self._poll = poll
        self._ring = ring
        self._hub = hub

    def run(self, now: float) -> float:
        moved, wait = self._upkeep.promote()
        if moved:
            self.moved_at = now
            self._ring()
            if self._hub is not None and self._hub.details:
                self._hub.emit(JobsPromoted(moved))
        else:
            self.quiet_at = now
        return self._poll if wait is None else min(self._poll, max(0.001, wait.total_seconds()))

    def failed(self) -> None:
        """Nothing to forget."""
