"""One queue's numbers for whoever starts and stops workers: a person, KEDA, a script. Plain data; asks nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from duly.client.inspect import QueueStatus


class Scale(msgspec.Struct, frozen=True):
    """How much waits, how fast it comes and goes, and how many workers hold its target. Rates in jobs a second."""

    queue: str
    ready: int
    running: int
    workers: int
    """Live worker processes that serve it."""
    workers_needed: int
    """Processes like the present ones that hold the target: what a scaler aims at. While nobody has measured their
    speed: one more than there are where jobs wait, else as many as there are."""
    oldest: timedelta | None
    wait_target: timedelta | None
    in_per_s: float | None
    out_per_s: float | None
    slope_per_s: float | None
    drain: timedelta | None
    """How long until nothing waits; None: never, or not known."""
    full_in: timedelta | None
    """How long until it reaches its max_depth; None: it has none, or does not grow."""
    max_running: int | None
    """Set where it runs as many as it may: more workers would start none of its jobs."""
    sentence: str


def scale_of(status: QueueStatus) -> Scale:
    """The same numbers, flat, so that a scaler's path to one of them is a name."""
    counts = status.counts
    needed = status.workers_needed
    if status.capped is not None or counts.paused:
        needed = status.workers
    elif needed is None:
        needed = status.workers + 1 if counts.ready else status.workers
    elif counts.running:
        needed = max(1, needed)
    return Scale(
        queue=counts.queue,
        ready=counts.ready,
        running=counts.running,
        workers=status.workers,
        workers_needed=needed,
        oldest=counts.oldest_ready,
        wait_target=status.pressure.wait_target,
        in_per_s=counts.in_per_s,
        out_per_s=counts.out_per_s,
        slope_per_s=counts.slope_per_s,
        drain=status.drain,
        full_in=status.full_in,
        max_running=status.capped,
        sentence=status.health,
    )
