"""How often something may start: rates with a burst, "5/s" or "100/s burst 20", and their arithmetic (GCRA).

Pure: the caller brings the clock and keeps the one number that a pace needs between two starts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from duly.core.durations import parse_rate
from duly.core.errors import UsageError

_UNITS: Final = (("s", 1), ("min", 60), ("h", 3_600))
_BURST: Final = re.compile(r"\s+burst\s+")


@dataclass(frozen=True, slots=True)
class Pace:
    """One start per `interval` seconds; after a pause up to `burst` at once."""

    interval: float
    burst: int = 1

    def start(self, due: float, now: float) -> tuple[float, float]:
        """(when one more may start, the next `due`). `due` is what the last call gave; 0 at first."""
        theoretical = max(due, now)
        allowed = theoretical - (self.burst - 1) * self.interval
        return max(now, allowed), theoretical + self.interval


def parse_pace(text: object, what: str = "rate") -> Pace:
    """Read "5/s", "600/min" or "100/s burst 20". UsageError with the text to write instead."""
    if not isinstance(text, str):
        raise UsageError(f"{what}={text!r:.60} has no unit; write a rate such as '5/s'")
    rate, *bursts = _BURST.split(text.strip())
    per_second = parse_rate(rate, what)
    if per_second is None:
        raise UsageError(f"{what}={text!r} is no bound; leave {what} out")
    if not bursts:
        return Pace(1 / per_second)
    if len(bursts) > 1 or not re.fullmatch(r"[0-9]{1,9}", bursts[0]) or int(bursts[0]) < 1:
        raise UsageError(
            f"{what}={text!r} has a burst that is no whole number from 1; write '{rate} burst 20'"
        )
    return Pace(1 / per_second, int(bursts[0]))


def pace_text(interval: float, burst: int = 1) -> str:
    """A pace as `parse_pace` reads it, per the shortest unit that gives 1 or more: "10/s burst 20", "2/min"."""
    unit, seconds = next(
        ((unit, seconds) for unit, seconds in _UNITS if seconds / interval >= 0.999_999), ("d", 86_400)
    )
    rate = f"{seconds / interval:.2f}".rstrip("0").rstrip(".")
    return f"{rate}/{unit}" + (f" burst {burst}" if burst > 1 else "")
