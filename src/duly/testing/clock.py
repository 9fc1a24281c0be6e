"""A clock that stands still until it is told to move. Any number of handles and threads may share one."""

import threading
from datetime import UTC, datetime, timedelta

from duly.core.durations import Duration, parse_duration

NOON = datetime(2030, 5, 1, 12, 0, tzinfo=UTC)


class FakeClock:
    """Calling it returns its time; `advance` moves it on. Pass it as `clock` when a store is opened."""

    def __init__(self, start: datetime = NOON) -> None:
        if start.tzinfo is None:
            raise ValueError(f"a clock needs an aware time: write {start!r} with tzinfo=UTC")
        self._now = start
        self._lock = threading.Lock()

    def __call__(self) -> datetime:
        with self._lock:
            return self._now

    def advance(self, by: Duration) -> datetime:
        """Move on by "2d" or a timedelta and return the new time; a negative step is a clock that was set back."""
        step = by if isinstance(by, timedelta) else parse_duration(by, "advance(by)")
        with self._lock:
            self._now += step
            return self._now
