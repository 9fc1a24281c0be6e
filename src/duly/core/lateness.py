"""When a queue is late: the job that is ready longest has waited longer than its target. Numbers in, words out."""

from datetime import timedelta

from msgspec import Struct

from duly.core.durations import format_duration


class Crossing(Struct, frozen=True):
    """A queue that has become late, or is in time again."""

    queue: str
    late: bool
    wait_target: timedelta | None
    """None: it has none any more."""
    oldest: timedelta | None
    """Age of the job that is ready longest; None when none is."""


def is_late(wait_target: timedelta | None, oldest: timedelta | None) -> bool:
    return wait_target is not None and oldest is not None and oldest > wait_target


def late_text(wait_target: timedelta | None, oldest: timedelta | None) -> str | None:
    """How late a queue is, in words; None when it is in time."""
    if wait_target is None or oldest is None or oldest <= wait_target:
        return None
    waited = format_duration(timedelta(seconds=round(oldest.total_seconds())))
    return f"late: its oldest ready job has waited {waited}, above wait_target={format_duration(wait_target)}"
