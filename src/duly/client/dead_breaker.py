"""The dead-letter breaker of a queue, as an App declares it. Decides nothing."""

from __future__ import annotations

from duly.core.control import read_cap, read_share
from duly.core.dead_breaker import DeadBreakerPolicy
from duly.core.durations import Duration, parse_duration


class DeadBreaker:
    """When a queue stops itself: too many of its jobs die. For `App.queue(dead_breaker=…)`.

    Args:
        share: of the jobs that completed or died within the window, as "50%".
        min_ends: fewer of them stop nothing.
        window: the ends that are counted together; jobs must be kept at least as long.
        cool_down: stopped for so long; then one job tries, and twice as long each time that one dies, up to an hour.

    """

    def __init__(
        self, *, share: str = "50%", min_ends: int = 20, window: Duration = "5m", cool_down: Duration = "1m"
    ) -> None:
        self.policy = DeadBreakerPolicy(
            read_share(share, "share"),
            read_cap(min_ends, "min_ends"),
            parse_duration(window, "window", positive=True),
            parse_duration(cool_down, "cool_down", positive=True),
        )

    def __repr__(self) -> str:
        return f"<DeadBreaker at {self.policy.share:.0%} of {self.policy.min_ends} ends or more>"
