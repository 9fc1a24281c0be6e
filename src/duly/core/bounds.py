"""When a queue is full, and what its producers are told then: whether, how long to wait, and at what pace to go on.

Pure numbers in, numbers and words out; knows no store and no clock.
"""

from datetime import timedelta
from typing import Final

from msgspec import Struct

from duly.core.control import WhenFull
from duly.core.durations import format_duration

SAMPLE_AGE: Final = timedelta(seconds=1)
"""A sample of a queue is used for so long: a bound is exact but for the arrivals of that time."""
SHORTEST_WAIT: Final = SAMPLE_AGE
LONGEST_WAIT: Final = timedelta(minutes=1)
LONGEST_PACE: Final = timedelta(seconds=2)
"""A producer that is slowed waits no longer in one call."""


class Bound(Struct, frozen=True):
    """What a queue may hold; None: as much, or as old, as comes."""

    max_depth: int | None = None
    max_age: timedelta | None = None
    when_full: WhenFull = "reject"


class Fill(Struct, frozen=True):
    """A queue as it was sampled."""

    depth: int
    """Jobs that are ready."""
    oldest: timedelta | None = None
    """Since when the one that has waited longest is ready."""
    out_per_s: float | None = None
    """Jobs that end a second; None: nobody has measured it."""


def overfull(bound: Bound, fill: Fill, more: int) -> str | None:
    """Why `more` jobs do not fit, in words; None when they do. No number of jobs fits a queue that is too old."""
    if bound.max_depth is not None and fill.depth + more > bound.max_depth:
        extra = "1 more is" if more == 1 else f"{more} more are"
        return f"{fill.depth} jobs wait, {extra} above max_depth={bound.max_depth}"
    if bound.max_age is not None and fill.oldest is not None and fill.oldest > bound.max_age:
        waited = timedelta(seconds=int(fill.oldest.total_seconds()))
        return f"its oldest job has waited {format_duration(waited)}, above max_age={format_duration(bound.max_age)}"
    return None


def wait(bound: Bound, fill: Fill, more: int) -> timedelta:
    """How long until `more` jobs fit at the rate at which the queue drains: from a second to a minute."""
    if not fill.out_per_s:
        return LONGEST_WAIT
    over = 1 if bound.max_depth is None else fill.depth + more - bound.max_depth
    seconds = over / fill.out_per_s
    if seconds >= LONGEST_WAIT.total_seconds():
        return LONGEST_WAIT
    return max(SHORTEST_WAIT, timedelta(seconds=seconds))


def pace(bound: Bound, fill: Fill, more: int) -> timedelta:
    """How long a producer of `more` jobs waits first, so that all of them together bring no more than is done.

    As long as that many jobs take to end, times how far the queue is above its bound; at most LONGEST_PACE.
    """
    if overfull(bound, fill, more) is None:
        return timedelta(0)
    if not fill.out_per_s:
        return LONGEST_PACE
    excess = 1.0 if bound.max_depth is None else max(1.0, (fill.depth + more) / bound.max_depth)
    seconds = more / fill.out_per_s * excess
    return min(LONGEST_PACE, timedelta(seconds=min(seconds, LONGEST_PACE.total_seconds())))


def full_text(queue: str, why: str, retry_after: timedelta) -> str:
    """What the producer reads."""
    seconds = timedelta(seconds=-(-retry_after // timedelta(seconds=1)))
    return (
        f"the queue {queue!r} is full: {why}; nothing was stored. Try again in {format_duration(seconds)}, add workers "
        f"or raise its bound; see duly status {queue}"
    )
