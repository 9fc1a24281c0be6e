"""When a worker has nothing left to do: nothing held, due, ready or suspect, each looked for after the one before.

Reads the pump's and the duties' notes of what they found; touches no store.
"""

from duly.worker.batches import Batches
from duly.worker.promote import Promote
from duly.worker.pump import Pump
from duly.worker.suspects import Suspects


class IdleCheck:
    """Ask `done` again and again; it rings for the looks that are still missing."""

    def __init__(self, pump: Pump, promote: Promote, suspects: Suspects, batches: Batches) -> None:
        self._pump = pump
        self._promote = promote
        self._suspects = suspects
        self._batches = batches
        self._worked_at = -1.0
        self._nothing_due_at: float | None = None

    def done(self) -> bool:
        pump, promote, suspects = self._pump, self._promote, self._suspects
        worked_at = max(pump.worked_at, promote.moved_at, self._batches.moved_at)
        if worked_at != self._worked_at:
            self._worked_at, self._nothing_due_at = worked_at, None
        if len(pump.held) or pump.unwritten() or not self._batches.is_done:
            return False
        if self._nothing_due_at is None:
            # What the last job left for later may be due by now.
            if promote.quiet_at <= worked_at:
                return False
            self._nothing_due_at = promote.quiet_at
        since = self._nothing_due_at
        if pump.quiet_at > since and (suspects.mode == "quarantine" or suspects.quiet_at > since):
            return True
        suspects.look()
        pump.ring()
        return False
