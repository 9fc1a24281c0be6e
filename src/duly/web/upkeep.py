"""What workers do from time to time, for jobs that only workers of other languages run. Knows no request."""

from __future__ import annotations

from typing import Final

from duly.app import App
from duly.core.job import Incarnation
from duly.telemetry.hub import Hub
from duly.worker.duties import Duties
from duly.worker.promote import Promote
from duly.worker.rescue import Rescue
from duly.worker.retention import Retention
from duly.worker.sweep import Sweep

_POLL: Final = 1.0
_SWEEP_EVERY: Final = 1.0
_LATE: Final = 5.0
"""Seconds past its deadline after which a job is taken from a worker that is silent."""
_NOBODY: Final = Incarnation(0)
"""No row has this number: it beats for nobody, and waits as everyone's beat does."""


class Upkeep:
    """Due jobs, lapsed reservations, expiry and retention; safe beside any number of workers that do the same."""

    def __init__(self, app: App) -> None:
        store, settings, hub = app.store, app.settings, Hub()
        hub.listen(app.client.tell)
        every = settings.heartbeat.total_seconds()
        self._duties = Duties(
            [
                Promote(store.upkeep, _POLL, _ring),
                Rescue(store.leases, _NOBODY, every, settings.poison, _ring, hub),
                Sweep(store.upkeep, settings.poison, _LATE, _SWEEP_EVERY, _ring, hub),
                Retention(store.upkeep, app.queues, settings.keep, settings.keep_dead),
            ],
            hub,
        )

    def start(self) -> None:
        self._duties.start()

    def stop(self) -> None:
        self._duties.stop()


def _ring() -> None:
    """Whoever claims here polls."""
