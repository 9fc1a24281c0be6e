"""Tells when a queue has become late, and when it is in time again. Every worker looks; the store tells one of them."""

from typing import Final

from duly.stores.control import PressingStore
from duly.telemetry.events import QueueInTime, QueueLate
from duly.telemetry.hub import Hub

_EVERY: Final = 5.0


class Lateness:
    """Looks every five seconds at the queues with a `wait_target`, whoever has declared them."""

    name = "lateness"

    def __init__(self, pressing: PressingStore, hub: Hub) -> None:
        self._pressing = pressing
        self._hub = hub

    def run(self, now: float) -> float:
        for one in self._pressing.crossings():
            if one.late and one.wait_target is not None and one.oldest is not None:
                self._hub.emit(QueueLate(one.queue, one.wait_target, one.oldest))
            else:
                self._hub.emit(QueueInTime(one.queue))
        return _EVERY

    def failed(self) -> None:
        """Nothing to forget."""
