"""When a queue that kills its jobs stops itself, and when it goes on: rules over counted ends.

Pure: the caller counts, keeps the time and acts. Knows nothing of pauses and overrides but how long they last.
"""

from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from msgspec import Struct

AUTHOR: Final = "duly"
"""Who pauses a queue and lets it try again, in the records of both."""
LONGEST: Final = timedelta(hours=1)
"""A cool-down that grows from try to try grows no further."""


class DeadBreakerPolicy(Struct, frozen=True):
    """When a queue is stopped: too many of its jobs die."""

    share: float = 0.5
    """Of the jobs that completed or died within the window."""
    min_ends: int = 20
    """Fewer than that stop nothing."""
    window: timedelta = timedelta(minutes=5)
    cool_down: timedelta = timedelta(minutes=1)
    """Stopped for so long, then one job tries; twice as long each time that one dies."""


class Outcomes(Struct, frozen=True):
    """How jobs of a queue ended since a moment; completed ones counted only as far as the question needs."""

    completed: int
    dead: int


class Trial(Struct, frozen=True):
    """A stop that was made: from then on, for so long, and then one job at a time of as long."""

    at: datetime
    cool_down: timedelta


class Step(Enum):
    """What is to be done."""

    nothing = "nothing"
    stop = "stop"
    """Pause it for its cool-down, then let one job try."""
    stop_longer = "stop longer"
    go_on = "go on"


def counted_from(
    policy: DeadBreakerPolicy, trial: Trial | None, now: datetime, *, paused: bool
) -> datetime | None:
    """From when ends count; None while nothing can have ended that matters."""
    if trial is None:
        return now - policy.window
    opens = trial.at + trial.cool_down
    if now >= opens:
        return opens
    # Resumed by hand before its time: what has ended since counts.
    return None if paused else trial.at


def decide(policy: DeadBreakerPolicy, trial: Trial | None, seen: Outcomes) -> Step:
    """What the counted ends mean: for a queue that runs, and for one whose trial is under way."""
    if trial is None:
        ends = seen.completed + seen.dead
        return Step.stop if ends >= policy.min_ends and seen.dead >= policy.share * ends else Step.nothing
    if seen.dead:
        return Step.stop_longer
    return Step.go_on if seen.completed else Step.nothing


def longer(cool_down: timedelta) -> timedelta:
    """The cool-down after a trial that died."""
    return max(cool_down, min(2 * cool_down, LONGEST))
