"""Notifications as lines of the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from duly.core.notification import Notification
from duly.telemetry.events import AlertChanged, Happening
from duly.telemetry.hub import weight

_LOG: Final = logging.getLogger("duly.alerts")


def _to_logging(event: Happening) -> None:
    _LOG.log(weight(event.level), "%s", event.sentence())


@dataclass(frozen=True, slots=True)
class LogLine:
    """To the log of whoever evaluates: a worker's own, else the logger `duly.alerts`."""

    tell: Callable[[Happening], None] = _to_logging

    def send(self, note: Notification) -> None:
        """Write it; blocks for as long as the log does."""
        self.tell(AlertChanged(note.title(), note.text, note.owner, note.id))
