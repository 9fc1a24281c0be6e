"""How long a failed job waits before its next attempt.

Pure arithmetic: the caller brings the random number and adds the clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from duly.core.durations import Duration, compact_duration, parse_duration
from duly.core.errors import UsageError


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Backoff:
    """Waits that grow by `factor` from `base` up to `cap`, spread by full jitter.

    Full jitter draws each wait evenly from zero to its ceiling, so that jobs which failed
    together do not come back together. `jitter=False` waits the ceiling itself.

    Example:
        >>> plan = Backoff("1s", factor=4, jitter=False)
        >>> [plan.delay(failed, 0.5).total_seconds() for failed in (1, 2, 3)]
        [1.0, 4.0, 16.0]
    """

    base: timedelta
    factor: float
    cap: timedelta
    jitter: bool

    def __init__(
        self,
        base: Duration = "2s",
        *,
        factor: float = 3,
        cap: Duration = "15m",
        jitter: bool = True,
    ) -> None:
        first = parse_duration(base, "Backoff(base)")
        last = parse_duration(cap, "Backoff(cap)")
        if isinstance(factor, bool) or not isinstance(factor, (int, float)):
            raise UsageError(f"Backoff(factor={factor!r}) must be a number such as 3")
        if not 1 <= factor <= 1_000:
            raise UsageError(f"Backoff(factor={factor!r}) must be between 1 and 1000")
        if last < first:
            raise UsageError(
                f"Backoff(cap='{compact_duration(last)}') is below its base "
                f"'{compact_duration(first)}'; raise the cap or lower the base"
            )
        object.__setattr__(self, "base", first)
        object.__setattr__(self, "factor", factor)
        object.__setattr__(self, "cap", last)
        object.__setattr__(self, "jitter", bool(jitter))

    def __repr__(self) -> str:
        jitter = "" if self.jitter else ", jitter=False"
        base, cap = compact_duration(self.base), compact_duration(self.cap)
        return f"Backoff({base!r}, factor={self.factor!r}, cap={cap!r}{jitter})"

    def ceiling(self, failed: int) -> timedelta:
        """Return the longest wait after the `failed`-th failure (from 1): base to cap."""
        if failed < 1:
            raise ValueError(f"failed counts from 1, not {failed}")
        cap = self.cap.total_seconds()
        try:
            wait = self.base.total_seconds() * float(self.factor) ** (failed - 1)
        except OverflowError:
            return self.cap if self.base else self.base
        # The comparison also catches infinity; the cap itself is returned exact, not as a float.
        return self.cap if wait >= cap else timedelta(seconds=wait)

    def delay(self, failed: int, random: float) -> timedelta:
        """Return the wait after the `failed`-th failure; `random` is drawn from [0, 1]."""
        if not 0 <= random <= 1:
            raise ValueError(f"random must lie between 0 and 1, not {random}")
        ceiling = self.ceiling(failed)
        return ceiling * random if self.jitter else ceiling
