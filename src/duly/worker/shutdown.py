"""Shutdown by steps: claim nothing, give running handlers their grace, end the rest, write what ended, leave.

A state machine over the watch's clock; a second request only makes it quicker. Touches no store.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, Protocol

from duly.telemetry.events import GraceOver, StopAsked
from duly.telemetry.hub import Hub
from duly.worker.attempt import Attempt, Phase, Why

WRITE: Final = 10.0
"""How long the last ends may take to be written."""


class Stage(IntEnum):
    working = 0
    grace = 1
    """Running handlers may finish."""
    cut = 2
    """They were told to stop now."""
    writing = 3
    """Nothing runs any more, or nothing that can be stopped; the last ends are being written."""
    over = 4


class Crew(Protocol):
    """What a shutdown acts on."""

    def stop_claiming(self) -> None:
        """Claim nothing more, and hand back what no slot has taken."""

    def running(self) -> list[Attempt]: ...

    def stop(self, attempt: Attempt, why: Why, reason: str) -> None: ...

    def unwritten(self) -> list[Attempt]: ...

    def holds_nothing(self) -> bool: ...


class Shutdown:
    """One per process life."""

    def __init__(self, crew: Crew, cut: float, hub: Hub) -> None:
        self.stage = Stage.working
        self.reason = ""
        self._crew = crew
        self._cut = cut
        self._hub = hub
        self._grace_ends = 0.0
        self._cut_ends = 0.0
        self._write_ends = 0.0

    def ask(self, reason: str, grace: float, now: float) -> None:
        """Begin, or be quicker: a later request never gives more time."""
        if self.stage is Stage.working:
            self.stage, self.reason = Stage.grace, reason
            self._grace_ends = now + grace
            self._hub.emit(StopAsked(reason, grace, len(self._crew.running())))
            self._crew.stop_claiming()
        elif now + grace < self._grace_ends:
            self._grace_ends = now + grace
            self._hub.emit(StopAsked(reason, grace, len(self._crew.running())))

    def step(self, now: float) -> bool:
        """Move on as far as the clock allows. True when it is over."""
        if self.stage is Stage.grace:
            self._step_grace(now)
        if self.stage is Stage.cut and (not _alive(self._crew.running()) or now >= self._cut_ends):
            self.stage, self._write_ends = Stage.writing, now + WRITE
        if self.stage is Stage.writing and (self._written() or now >= self._write_ends):
            self.stage = Stage.over
        return self.stage is Stage.over

    def _step_grace(self, now: float) -> None:
        alive = _alive(self._crew.running())
        if not alive:
            self.stage, self._write_ends = Stage.writing, now + WRITE
        elif now >= self._grace_ends:
            self.stage, self._cut_ends = Stage.cut, now + self._cut
            self._hub.emit(GraceOver(tuple(attempt.job.id for attempt in alive)))
            for attempt in alive:
                self._crew.stop(attempt, "shutdown", self.reason)

    def _written(self) -> bool:
        running = self._crew.running()
        return not self._crew.unwritten() and (bool(running) or self._crew.holds_nothing())


def _alive(running: Sequence[Attempt]) -> list[Attempt]:
    """Those worth waiting for: a handler that was given up will not end."""
    return [attempt for attempt in running if attempt.phase is Phase.running]
