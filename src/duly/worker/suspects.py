"""Jobs with a lost attempt behind them run alone, so that one which kills its process convicts only itself.

Decides when to look for them and who runs them; claims nothing itself.
"""

from collections.abc import Callable
from typing import Final, Literal

from duly.worker.attempt import Attempt
from duly.worker.held import Held

Mode = Literal["quarantine", "report", "alone"]
"""quarantine: this process runs nothing else. report: the supervisor starts such a process. alone: when it is empty."""

_NEVER: Final = 60.0


class Suspects:
    """What one process does about suspects. The pump's thread calls it."""

    def __init__(
        self, mode: Mode, every: float, on_found: Callable[[], None], covered: Callable[[], bool]
    ) -> None:
        self.mode = mode
        self._every = every
        self.quiet_at = -1.0
        """When the last look was sent that found none, or that was reported."""
        self._on_found = on_found
        self._covered = covered
        self._due_at = 0.0
        self._alone: Attempt | None = None

    def due(self, now: float, outstanding: int) -> bool:
        """Whether the next claim looks for one."""
        if self.mode == "quarantine" or now < self._due_at:
            return False
        if self.mode == "report":
            if not self._covered():
                return True
            # Somebody works on them: a look would only take one out of its hands for a moment.
            self.quiet_at, self._due_at = now, now + self._every
            return False
        return outstanding == 0

    def due_in(self, now: float) -> float:
        return _NEVER if self.mode == "quarantine" else max(0.0, self._due_at - now) or 1.0

    def look(self) -> None:
        """At the next chance. Called from any thread."""
        self._due_at = 0.0

    def answered(self, found: int, sent_at: float, now: float) -> None:
        # Strangers may have reaped a worker meanwhile: nobody tells us.
        self._due_at = now + self._every
        if not found or self.mode == "report":
            self.quiet_at = sent_at
        elif self.mode == "alone":
            self._due_at = now

    def take(self, attempt: Attempt) -> bool:
        """Whether this process runs it; it is the only one here then."""
        if self.mode == "report":
            self._on_found()
            return False
        self._alone = attempt
        return True

    def running_alone(self, held: Held) -> bool:
        """Nothing else may be claimed beside it."""
        if self._alone is None:
            return False
        if held.find(self._alone.job.id) is self._alone:
            return True
        self._alone = None
        return False

    def made(self, now: float) -> None:
        """An attempt of this process was lost and its job is a suspect now."""
        self._due_at = now
        if self.mode == "report":
            self._on_found()
