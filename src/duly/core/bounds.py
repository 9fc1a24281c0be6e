"""When a queue is full, and what its producers are told then: whether, how long to wait, and at what pace to go on.

Pure numbers in, numbers and words out; knows no store and no clock.
"""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from duly.core.control import WhenFull
from duly.core.defaults import IMPORTANCE
from duly.core.durations import Duration, format_duration, parse_duration
from duly.core.errors import UsageError

SAMPLE_AGE: Final = timedelta(seconds=1)
"""A sample of a queue is used for so long: a bound is exact but for the arrivals of that time."""
NEARLY: Final = 0.8
"""From this share of its depth on, a queue is worth a word."""
TURNED_AWAY: Final = timedelta(hours=1)
"""What a queue has turned away is told for so long."""
SHORTEST_WAIT: Final = SAMPLE_AGE
LONGEST_WAIT: Final = timedelta(minutes=1)
LONGEST_PACE: Final = timedelta(seconds=1)
"""A producer that is slowed waits no longer in one call."""
MOST_DEPTH: Final = 1_000_000_000
COUNTED_FOR_AGE: Final = 10_000
"""Without a depth the oldest job is looked for among so many of the first."""


class Bound(Struct, frozen=True):
    """What a queue may hold; None: as much, or as old, as comes."""

    max_depth: int | None = None
    max_age: timedelta | None = None
    when_full: WhenFull = "reject"

    @property
    def count_to(self) -> int:
        """How many ready jobs have to be counted."""
        return COUNTED_FOR_AGE if self.max_depth is None else self.max_depth


class Fill(Struct, frozen=True):
    """A queue as it was sampled."""

    depth: int
    """Jobs that are ready."""
    oldest: timedelta | None = None
    """Since when the one that has waited longest is ready."""
    out_per_s: float | None = None
    """Jobs that end a second; None: nobody has measured it."""
    at: datetime | None = None
    """When it was counted, for others perhaps; None: for this very answer."""

    def since(self, arrived: int, seconds: float) -> "Fill":
        """This after so many more jobs and so long: those that came less those that have ended at the known rate."""
        left = arrived - int((self.out_per_s or 0.0) * seconds)
        return replace(self, depth=self.depth + left) if left > 0 else self


class Pressure(Struct, frozen=True):
    """What is declared of how much a queue may hold, and what it has turned away within the hour."""

    bound: Bound | None = None
    importance: int = IMPORTANCE
    wait_target: timedelta | None = None
    """How soon its jobs should start."""
    refused: int = 0
    """Jobs that producers were refused, by its own bound or the store's."""
    refused_at: datetime | None = None
    """The last of them."""
    shed: int = 0
    shed_at: datetime | None = None


def bound_of(max_depth: int | None, max_age: timedelta | None, when_full: WhenFull | None) -> Bound | None:
    """What a store keeps of a declaration, as a bound."""
    if max_depth is None and max_age is None:
        return None
    return Bound(max_depth, max_age, when_full or "reject")


def read_bound(max_depth: object, max_age: Duration | None, when_full: WhenFull) -> Bound | None:
    """What a queue's declaration says; None when it says nothing. UsageError for what bounds nothing."""
    if when_full not in ("reject", "shed", "slow"):
        raise UsageError(f'when_full={when_full!r:.60}: write "reject", "shed" or "slow"')
    if max_depth is None and max_age is None:
        if when_full != "reject":
            raise UsageError(f'when_full="{when_full}" needs a bound; write max_depth=100_000, too')
        return None
    if max_depth is not None and (
        isinstance(max_depth, bool) or not isinstance(max_depth, int) or not 1 <= max_depth <= MOST_DEPTH
    ):
        raise UsageError(
            f"max_depth={max_depth!r:.60} must be a whole number of jobs, from 1 to {MOST_DEPTH:,}"
        )
    if when_full == "shed" and max_age is not None:
        raise UsageError(
            'when_full="shed" sheds the latest, which makes the oldest no younger; write max_depth= alone, or '
            "expires= for jobs that nobody wants any more after a time"
        )
    age = None if max_age is None else parse_duration(max_age, "max_age", positive=True)
    return Bound(max_depth, age, when_full)


def read_importance(importance: object) -> int:
    """A queue's importance. UsageError for what is no whole number of 32 bits."""
    if isinstance(importance, bool) or not isinstance(importance, int) or not 0 <= importance < 2**31:
        raise UsageError(
            f"importance={importance!r:.60} must be a whole number from 0; lower is more important, 100 is the default"
        )
    return importance


def overfull(bound: Bound, fill: Fill, more: int) -> str | None:
    """Why `more` jobs do not fit, in words; None when they do. No number of jobs fits a queue that is too old."""
    if bound.max_depth is not None and fill.depth + more > bound.max_depth:
        extra = "1 more is" if more == 1 else f"{more} more are"
        waits = "1 job waits" if fill.depth == 1 else f"{fill.depth} jobs wait"
        return f"{waits}, {extra} above max_depth={bound.max_depth}"
    if bound.max_age is not None and fill.oldest is not None and fill.oldest > bound.max_age:
        waited = timedelta(seconds=int(fill.oldest.total_seconds()))
        return f"its oldest job has waited {format_duration(waited)}, above max_age={format_duration(bound.max_age)}"
    return None


def wait(bound: Bound, fill: Fill, more: int) -> timedelta:
    """How long until `more` jobs fit at the rate at which the queue drains: from a second to a minute."""
    return max(SHORTEST_WAIT, room(bound, fill, more))


def room(bound: Bound, fill: Fill, more: int = 1) -> timedelta:
    """How long it takes to make room for so many at the rate at which the queue drains; at most a minute."""
    if not fill.out_per_s:
        return LONGEST_WAIT
    over = 1 if bound.max_depth is None else max(0, fill.depth + more - bound.max_depth)
    seconds = over / fill.out_per_s
    return LONGEST_WAIT if seconds >= LONGEST_WAIT.total_seconds() else timedelta(seconds=seconds)


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


def pressure_text(pressure: Pressure, depth: int, oldest: timedelta | None, now: datetime) -> str | None:
    """What a queue with so many ready jobs holds back, in a sentence or two; None when that is nothing."""
    parts = []
    bound = pressure.bound
    if bound is not None:
        why = overfull(bound, Fill(depth, oldest), 1)
        if why is not None:
            met = {"reject": "producers are refused", "slow": "producers are slowed"}
            parts.append(f"full: {why}; {met.get(bound.when_full, 'the least urgent jobs are shed')}")
        elif bound.max_depth is not None and depth >= NEARLY * bound.max_depth:
            parts.append(f"{share_text(bound, depth)} of max_depth={bound.max_depth}")
    for jobs, at, how in (
        (pressure.refused, pressure.refused_at, "refused"),
        (pressure.shed, pressure.shed_at, "shed"),
    ):
        if jobs and at is not None:
            ago = format_duration(timedelta(seconds=max(0, int((now - at).total_seconds()))))
            were = "1 job was" if jobs == 1 else f"{jobs:,} jobs were"
            parts.append(f"{were} {how} lately, the last {ago} ago")
    return "; ".join(parts) or None


def share_text(bound: Bound, depth: int) -> str:
    """How full a queue with so many ready jobs is; "" without a depth."""
    return "" if bound.max_depth is None else f"{100 * depth // bound.max_depth}%"


def full_text(queue: str, why: str, retry_after: timedelta) -> str:
    """What the producer reads of a queue above its bound."""
    seconds = timedelta(seconds=-(-retry_after // timedelta(seconds=1)))
    return (
        f"the queue {queue!r} is full: {why}; nothing was stored. Try again in {format_duration(seconds)}, add workers "
        f"or raise its bound; see duly status {queue}"
    )


def spent_text(queue: str, why: str, retry_after: timedelta) -> str:
    """What the producer reads of a queue that gives way to more important ones."""
    seconds = timedelta(seconds=-(-retry_after // timedelta(seconds=1)))
    return (
        f"the queue {queue!r} gives way to more important ones: {why}; nothing was stored. Try again in "
        f"{format_duration(seconds)}, or see duly status"
    )
