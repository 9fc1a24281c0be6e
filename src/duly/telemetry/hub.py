"""The place where events are emitted and listened to; one per worker process, handed on, never global.

Knows no event by name. A listener that fails is reported once on stderr and never disturbs the emitter.
"""

import sys
from collections.abc import Callable
from contextlib import suppress

from duly.telemetry.events import Happening

Listener = Callable[[Happening], None]

_WEIGHTS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class Hub:
    """Emit from any thread; listeners run in the emitter's thread and must be quick."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._broken: set[int] = set()
        self.details = False
        """Whether anybody wants debug events; emitters of one per job ask first."""
        self.ends = False
        """Whether anybody wants the end of each attempt, also where it is a completion like most."""

    def listen(self, listener: Listener, *, details: bool = False, ends: bool = False) -> None:
        """Call `listener` for every event from now on. Details are all of them, ends included."""
        self._listeners.append(listener)
        self.details = self.details or details
        self.ends = self.ends or ends or details

    def emit(self, event: Happening) -> None:
        for listener in self._listeners:
            try:
                listener(event)
            except Exception as failure:
                self._report(listener, failure)

    def _report(self, listener: Listener, failure: Exception) -> None:
        if id(listener) in self._broken:
            return
        self._broken.add(id(listener))
        # A handler may have closed stderr.
        with suppress(OSError, ValueError):
            print(f"duly: a listener of events failed: {failure!r}", file=sys.stderr)  # noqa: T201


def weight(level: str) -> int:
    """A level as a number: more is graver."""
    return _WEIGHTS[level]
