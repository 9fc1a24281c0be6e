"""How often one token may ask: GCRA in this process, and the headers that tell the client how it stands.

Headers as of draft-ietf-httpapi-ratelimit-headers-11. Knows no token and no route.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from duly.core.pace import Pace, pace_text, parse_pace
from duly.web.problems import Refused

DEFAULT: Final = "1000/s burst 2000"
_KEPT: Final = 10_000


class Standing(NamedTuple):
    """How one key stands after a request."""

    allowed: bool
    left: int
    """Requests that would be let through at once."""
    wait: float
    """Seconds until the next one is, or until all of the burst is back."""


class Limits:
    """Counts by key, for at most so many keys; one that was forgotten begins anew, with its whole burst."""

    def __init__(
        self, rate: str | None = DEFAULT, *, clock: Callable[[], float] = time.monotonic, kept: int = _KEPT
    ) -> None:
        self.pace: Pace | None = None if rate is None else parse_pace(rate, "rate")
        self._policy = "" if self.pace is None else _policy(self.pace)
        self._clock = clock
        self._kept = kept
        self._due: dict[Hashable, float] = {}

    def take(self, key: Hashable) -> Standing:
        """Count one request, if there is room for it."""
        pace = self.pace
        if pace is None:
            return Standing(True, 0, 0.0)
        now = self._clock()
        due = self._due.get(key, 0.0)
        start, later = pace.start(due, now)
        if start > now:
            return Standing(False, 0, start - now)
        if key not in self._due and len(self._due) >= self._kept:
            self._forget(now)
        self._due[key] = later
        spent = (later - now) / pace.interval
        return Standing(True, max(0, int(pace.burst - spent + 1e-9)), later - now)

    def check(self, key: Hashable) -> dict[str, str]:
        """The headers of the answer. Refused, 429 with Retry-After, when the key has asked too often."""
        if self.pace is None:
            return {}
        standing = self.take(key)
        headers = self._headers(standing)
        if standing.allowed:
            return headers
        raise Refused(
            429,
            "Too many requests; wait, or ask for a higher rate",
            f"this token may ask {pace_text(self.pace.interval, self.pace.burst)}",
            headers={**headers, "Retry-After": str(max(1, math.ceil(standing.wait)))},
        )

    def _headers(self, standing: Standing) -> dict[str, str]:
        return {
            "RateLimit-Policy": self._policy,
            "RateLimit": f'"token";r={standing.left};t={math.ceil(standing.wait)}',
        }

    def _forget(self, now: float) -> None:
        """Those whose burst is whole again lose nothing."""
        self._due = {key: due for key, due in self._due.items() if due > now}
        while len(self._due) >= self._kept:
            self._due.pop(next(iter(self._due)))


def _policy(pace: Pace) -> str:
    window = max(1, math.ceil(pace.burst * pace.interval))
    return f'"token";q={pace.burst};w={window}'
