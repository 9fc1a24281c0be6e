"""What some worker must do from time to time, beside running jobs: one thread takes the duties in turn, when due.

Knows each duty by its name and its next time only. A duty that fails is reported and tried again, later each time.
"""

import random
import threading
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from duly.stores.faults import Transient
from duly.telemetry.events import DutyFailed, StoreAway, StoreBack
from duly.telemetry.hub import Hub
from duly.worker.board import boottime

_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 30.0
_LONGEST_WAIT: Final = 60.0


class Duty(Protocol):
    """One of them."""

    name: str

    def run(self, now: float) -> float:
        """Do it once; the seconds until it is due again. `now` is boot time."""

    def failed(self) -> None:
        """Its last run did not end: what it remembers of earlier ones may prove nothing."""


class Duties:
    """`round` does what is due; the thread repeats it."""

    def __init__(self, duties: Sequence[Duty], hub: Hub, clock: Callable[[], float] = boottime) -> None:
        self.failure: BaseException | None = None
        self._duties = list(duties)
        self._hub = hub
        self._clock = clock
        self._due = dict.fromkeys((duty.name for duty in duties), 0.0)
        self._faults = dict.fromkeys((duty.name for duty in duties), 0)
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="duly-duties", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def soon(self, name: str) -> None:
        """Let this duty be due now. Called from any thread."""
        if name in self._due:
            self._due[name] = 0.0
            self._wake.set()

    def round(self) -> float:
        """Do everything that is due; the seconds until the next is."""
        for duty in self._duties:
            now = self._clock()
            if self._stopping or self._due[duty.name] > now:
                continue
            # Set before the run: a `soon` during the run must not be lost.
            self._due[duty.name] = float("inf")
            pause = self._one(duty, now)
            self._due[duty.name] = min(self._due[duty.name], self._clock() + pause)
        if not self._due:
            return _LONGEST_WAIT
        return max(0.0, min(self._due.values()) - self._clock())

    def _one(self, duty: Duty, now: float) -> float:
        try:
            pause = duty.run(now)
        except Transient as fault:
            if self._count(duty) == 1:
                self._hub.emit(StoreAway(duty.name, str(fault)))
        except Exception as error:
            if self._count(duty) in {1, 10, 100}:
                self._hub.emit(DutyFailed(duty.name, f"{type(error).__name__}: {error}"))
        else:
            if self._faults[duty.name]:
                self._hub.emit(StoreBack(duty.name, 0.0))
                self._faults[duty.name] = 0
            return pause
        duty.failed()
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * float(1 << min(self._faults[duty.name], 10)))
        return longest * random.uniform(0.5, 1.0)

    def _count(self, duty: Duty) -> int:
        self._faults[duty.name] += 1
        return self._faults[duty.name]

    def _run(self) -> None:
        try:
            while not self._stopping:
                pause = self.round()
                self._wake.wait(min(pause, _LONGEST_WAIT))
                self._wake.clear()
        except BaseException as error:
            self.failure = error
