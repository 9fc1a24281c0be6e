"""How uses of resources ended, as their breakers count them: noted by attempts, told to the store once a second, and
at once after a pause: then it may be the try on which an open breaker waits.

Knows which ends of an attempt count; opens no breaker itself.
"""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from duly.client.job import CallOutcome
from duly.core.control import Calls
from duly.core.job import Ended
from duly.core.lifecycle import Event
from duly.stores.protocol import ControlStore
from duly.telemetry.events import BreakerChanged
from duly.telemetry.hub import Hub

_EVERY: Final = 1.0


class Usage:
    """Of one process, by resource. Any thread may note."""

    def __init__(self) -> None:
        self.soon: Callable[[], None] = lambda: None
        """Has it told now; called for the first after a pause."""
        self._lock = threading.Lock()
        self._calls: dict[str, list[int]] = {}
        self._paused = True

    def note(self, resource: str, calls: int, failures: int) -> None:
        with self._lock:
            found = self._calls.setdefault(resource, [0, 0])
            found[0] += calls
            found[1] += failures
            first, self._paused = self._paused, False
        if first:
            self.soon()

    def take(self) -> list[Calls]:
        """What was noted since; forgotten here."""
        with self._lock:
            taken, self._calls = self._calls, {}
            self._paused = not taken
        return [Calls(resource, calls, failures) for resource, (calls, failures) in taken.items()]


class Observe:
    """The duty that tells the store."""

    name = "resource calls"

    def __init__(
        self, usage: Usage, control: ControlStore, hub: Hub, let_run: Callable[[str], None] = lambda _: None
    ) -> None:
        usage.soon = partial(let_run, self.name)
        self._usage = usage
        self._control = control
        self._hub = hub

    def run(self, now: float) -> float:
        if calls := self._usage.take():
            try:
                changed = self._control.observe(calls)
            except BaseException:
                for one in calls:
                    self._usage.note(one.resource, one.calls, one.failures)
                raise
            for record in changed:
                if record.breaker is not None:
                    self._hub.emit(BreakerChanged(record.name, record.breaker, record.breaker_until))
        return _EVERY

    def failed(self) -> None:
        """Nothing to forget: what could not be told is told the next time."""


def failed(outcome: CallOutcome, why: str | None) -> bool | None:
    """Whether a block's use failed; None where it says nothing: cut short for a reason of ours."""
    if outcome == "cut":
        return True if why == "timeout" else None
    return outcome == "failed"


def judged(ended: Ended) -> bool | None:
    """Whether an attempt's end is a failure of what it used; None where it says nothing of it.

    Transient failures are, time-outs included; a permanent one is an answer. A snooze, a skip or a burial is the
    handler's own word, and an interruption is nobody's.
    """
    if ended.event is Event.complete:
        return False
    return ended.transient if ended.event is Event.fail and ended.elapsed is not None else None


def uses(watched: tuple[str, ...], said: frozenset[str], ended: Ended) -> Iterator[tuple[str, bool]]:
    """What the end of an attempt says of the resources of its task, but for those that its blocks spoke of."""
    failure = judged(ended)
    if failure is not None:
        for resource in watched:
            if resource not in said:
                yield resource, failure
