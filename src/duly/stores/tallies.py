"""What a store promises of counts over time. Each sentence has a test on every store."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, Protocol, TypeAlias

from msgspec.structs import replace

from duly.core.operating import Tally

Grain: TypeAlias = Literal["minute", "hour"]

_COUNTS: Final = (
    "completed", "skipped", "dead", "cancelled", "shed", "failed", "lost", "timeout", "redelivered", "redriven",
    "suppressed",
)  # fmt: skip
"""In the order in which stores read them."""


def tally_of(queue: str, task: str, at: datetime, counts: Sequence[int], waited: int, ran: int) -> Tally:
    """A tally as stores keep it: its counts in their order, durations in microseconds."""
    found = Tally(queue, task, at, waited=timedelta(microseconds=waited), ran=timedelta(microseconds=ran))
    return replace(found, **dict(zip(_COUNTS, counts, strict=True)))


class TallyStore(Protocol):
    """What happened per queue and task, counted by a duty from the records of ends: no job pays for it."""

    def fold(self) -> int:
        """Count the next minutes that are over and not counted yet, each once, whoever does it: at most five, how many;
        the first time from an hour ago on. What is older than an hour is kept by the hour only, for 14 days. The sweep
        does it, too."""

    def read(
        self,
        by: Grain,
        since: datetime,
        until: datetime | None = None,
        *,
        queues: Sequence[str] | None = None,
        tasks: Sequence[str] | None = None,
    ) -> list[Tally]:
        """Those whose beginning lies there, by time, queue and task; nothing for a time without ends."""

    def counted(self) -> datetime | None:
        """Up to when all is counted; None before the first fold."""
