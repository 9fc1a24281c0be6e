"""Arithmetic of pressure: how fast a queue grows, when it will be empty, and one sentence that says so.

Pure numbers in, numbers and words out; knows no store and no clock.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from duly.core.durations import LONGEST, format_duration

QUEUE_FULL: Final = "queue full"
"""Why a job was shed."""


def slope(samples: Iterable[tuple[float, float]]) -> float | None:
    """Return the trend of (seconds, depth) pairs in jobs per second, by least squares.

    None when fewer than two moments were seen: one sample has no direction.
    """
    points = list(samples)
    if len(points) < 2:
        return None
    # Around the mean, since seconds since 1970 squared would leave few digits for the difference.
    middle_time = sum(time for time, _ in points) / len(points)
    middle_depth = sum(depth for _, depth in points) / len(points)
    spread = sum((time - middle_time) ** 2 for time, _ in points)
    if spread == 0:
        return None
    return sum((time - middle_time) * (depth - middle_depth) for time, depth in points) / spread


def drain_time(depth: int, in_per_s: float, out_per_s: float) -> timedelta | None:
    """Return how long until a queue of `depth` is empty at these rates; None means never."""
    if depth <= 0:
        return timedelta(0)
    net = out_per_s - in_per_s
    if net <= 0 or depth / net >= LONGEST.total_seconds():
        return None
    return timedelta(seconds=depth / net)


def health(
    queue: str,
    *,
    depth: int,
    running: int = 0,
    workers: int = 0,
    paused: bool = False,
    oldest: timedelta | None = None,
    in_per_s: float | None = None,
    out_per_s: float | None = None,
    outlook: str | None = None,
) -> str:
    """Return one sentence on a queue: what will happen, and what to do where that is bad.

    `depth` counts the jobs that are ready, `workers` the live ones that serve the queue; `outlook` is what `core.plan`
    says of its slope.
    """
    waiting = _jobs(depth) + (f", the oldest for {_span(oldest)}" if depth and oldest is not None else "")
    if paused:
        return f"paused: {waiting} until `duly resume {queue}`"
    if not workers and (depth or running):
        return f"no worker serves it: {waiting}; start one with `duly worker --queues {queue}`"
    if not depth:
        return f"keeping up: nothing waits, {running} running" if running else "idle"
    if in_per_s is None or out_per_s is None:
        return f"{waiting}; too few samples yet to say when it will be empty"
    left = drain_time(depth, in_per_s, out_per_s)
    if left is not None:
        more = "" if outlook is None else f"; {outlook}"
        return f"{waiting}; empty in {_span(left)} at {_rate(out_per_s)} out and {_rate(in_per_s)} in{more}"
    if not out_per_s:
        return f"{waiting}; nothing was finished lately: look at the running jobs with `duly jobs --queue {queue}`"
    remedy = ": add slots or workers" if outlook is None else f"; {outlook}"
    return f"{waiting}; never empty at {_rate(out_per_s)} out and {_rate(in_per_s)} in{remedy}"


def _span(span: timedelta) -> str:
    return format_duration(timedelta(seconds=round(span.total_seconds())))


def _jobs(depth: int) -> str:
    return "1 job waits" if depth == 1 else f"{depth} jobs wait"


def _rate(per_second: float) -> str:
    if per_second >= 1 or not per_second:
        return f"{per_second:.3g}/s"
    per_minute = per_second * 60
    return f"{per_minute:.3g}/min" if per_minute >= 1 else f"{per_minute * 60:.3g}/h"
