"""What a process counts of itself from the events of its hub, in a form that can be sent and added up.

Knows no metrics library and no process but its own.
"""

import threading
from bisect import bisect_left
from typing import Final

from msgspec import Struct, field

from duly.telemetry.events import AttemptEnded, Happening
from duly.telemetry.hub import weight

BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)
"""Upper bounds in seconds; what is above the last is in none."""
_WARNING: Final = weight("warning")

Task = tuple[str, str]
"""(queue, task)."""


class Times(Struct):
    """How long attempts of one task took."""

    seconds: float = 0.0
    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    """By bucket, each attempt in one; the last has those above all bounds."""

    def add(self, seconds: float) -> None:
        self.seconds += seconds
        self.counts[bisect_left(BUCKETS, seconds)] += 1

    def join(self, other: "Times") -> None:
        self.seconds += other.seconds
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]


class Counted(Struct, tag=True):
    """What has happened since the last time it was said."""

    outcomes: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """By queue, task and how the attempt ended."""
    times: dict[Task, Times] = field(default_factory=dict)
    dead: dict[Task, int] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    """Warnings and errors by name."""

    def __bool__(self) -> bool:
        return bool(self.outcomes or self.events)

    def join(self, other: "Counted") -> None:
        """Add what another process, or a later second, has counted."""
        for outcome, number in other.outcomes.items():
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + number
        for task, number in other.dead.items():
            self.dead[task] = self.dead.get(task, 0) + number
        for name, number in other.events.items():
            self.events[name] = self.events.get(name, 0) + number
        for task, times in other.times.items():
            self.times.setdefault(task, Times()).join(times)


class Totals:
    """A listener for a Hub, which wants its ends. Called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted = Counted()

    def __call__(self, event: Happening) -> None:
        with self._lock:
            if isinstance(event, AttemptEnded):
                self._note(self._counted, event)
            elif weight(event.level) >= _WARNING:
                events, name = self._counted.events, type(event).__name__
                events[name] = events.get(name, 0) + 1

    def take(self) -> Counted:
        """What was counted since the last call."""
        with self._lock:
            counted, self._counted = self._counted, Counted()
        return counted

    def add(self, other: Counted) -> None:
        """What another process says of itself."""
        with self._lock:
            self._counted.join(other)

    def all(self) -> Counted:
        """A copy of everything so far, for one that is never taken from."""
        everything = Counted()
        with self._lock:
            everything.join(self._counted)
        return everything

    @staticmethod
    def _note(counted: Counted, event: AttemptEnded) -> None:
        task = (event.queue, event.task)
        outcome = (*task, event.outcome)
        counted.outcomes[outcome] = counted.outcomes.get(outcome, 0) + 1
        if event.elapsed is not None:
            times = counted.times.get(task)
            if times is None:
                times = counted.times[task] = Times()
            times.add(event.elapsed)
        if event.to == "dead":
            counted.dead[task] = counted.dead.get(task, 0) + 1
