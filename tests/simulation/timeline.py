"""Virtual time: events in the order of their moments, and of a seeded draw where moments are equal."""

import heapq
import random
from collections.abc import Callable
from datetime import datetime, timedelta

from duly.testing.clock import NOON

Act = Callable[[], None]


class Timeline:
    """Nothing happens between two events: time jumps from one to the next."""

    def __init__(self, draw: random.Random) -> None:
        self.now = 1_000.0
        """Boot time in seconds, the same for all processes of all machines."""
        self.log: list[str] = []
        self._draw = draw
        self._events: list[tuple[float, float, int, str, Act]] = []
        self._count = 0

    def clock(self) -> float:
        return self.now

    def date(self) -> datetime:
        """The database's clock."""
        return NOON + timedelta(seconds=round(self.now - 1_000.0, 6))

    def at(self, moment: float, name: str, act: Act) -> None:
        """Let `act` happen then, or now when that is past."""
        self._count += 1
        event = (max(moment, self.now), self._draw.random(), self._count, name, act)
        heapq.heappush(self._events, event)

    def after(self, wait: float, name: str, act: Act) -> None:
        self.at(self.now + wait, name, act)

    def step(self) -> bool:
        """The next event; False when there is none."""
        if not self._events:
            return False
        self.now, _, _, name, act = heapq.heappop(self._events)
        self.note(name)
        act()
        return True

    def note(self, text: str) -> None:
        self.log.append(f"{self.now - 1_000.0:9.3f}  {text}")
