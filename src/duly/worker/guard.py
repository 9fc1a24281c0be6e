"""The supervisor's eye on children that cannot watch themselves: stopped ones, and ones whose GIL or loop is held.

Reads boards and /proc; kills. Knows no store.
"""

import os
import signal
import time
from contextlib import suppress
from typing import Final

from duly.telemetry.events import LoopHung
from duly.telemetry.hub import Hub
from duly.worker.family import ChildProcess

_LOOK_EVERY: Final = 1.0
_STALE: Final = 2.0
_NO_WORK: Final = 60.0
_STACKS: Final = 0.3


class Guard:
    """Looks at each child about once a second."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._looked: dict[int, float] = {}

    def look_at(self, child: ChildProcess, now: float) -> None:
        """Kill it when its lease must not be kept alive any longer."""
        if child.registered is None or now - self._looked.get(child.pid, 0.0) < _LOOK_EVERY:
            return
        self._looked[child.pid] = now
        still_for = now - child.board.pulse().ticked_at
        if still_for < _STALE:
            child.stopped_since = None
            return
        plan = child.registered.plan
        if child.process.is_stopped():
            since = child.stopped_since = child.stopped_since or now
            if now - since >= plan.lease:
                child.kill(f"it was stopped for longer than its lease of {plan.lease:g} s")
            return
        child.stopped_since = None
        # The child's own watch needs the GIL and is sooner: this is for what holds even that.
        patience = 2 * plan.patience + _STALE
        limits = [record.deadline for record in child.board.started() if record.running]
        ends = max(limits) if limits else now - still_for + max(_NO_WORK, plan.lease)
        if still_for >= patience and now >= ends + patience and child.stop_sent is None:
            self._show_stacks(child, still_for)
            child.kill("its event loop did not turn for the time to run of what it ran")

    def _show_stacks(self, child: ChildProcess, still_for: float) -> None:
        self._hub.emit(
            LoopHung(None, None, still_for, f"(stacks of process {child.pid} follow on its stderr)")
        )
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGUSR1)
        # faulthandler writes them without the GIL.
        time.sleep(_STACKS)
