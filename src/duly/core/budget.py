"""The budget of a whole store: how full it is, who gives way at which fill, and when it will be full.

Pure numbers in, numbers and words out; knows no store, no disk and no clock.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Final

from msgspec import Struct

from duly.core.bounds import LONGEST_WAIT
from duly.core.defaults import IMPORTANCE
from duly.core.durations import LONGEST, format_size
from duly.core.pressure import slope

STORE_FULL: Final = "store full"
"""Why a job was shed."""
FIRST: Final = 0.80
"""The fill at which the least important queues begin to be refused."""
LAST: Final = 0.95
"""The fill at which all queues are refused but the most important ones."""
FULL: Final = 1.0
"""From here on the store makes room by itself, until it is below LAST."""
RECOVERY: Final = 0.05
"""Who was refused is let in again so far below the fill at which that began."""


_SHORTEST_LOOK: Final = 0.05
_LONGEST_LOOK: Final = 1.0
_BURST: Final = 32 * 1024 * 1024
"""Bytes a second that producers together may bring all of a sudden."""


class Budget(Struct, frozen=True):
    """What a store may take; None: as much as comes. In bytes."""

    max_bytes: int | None = None
    min_free_disk: int | None = None

    def __bool__(self) -> bool:
        return self.max_bytes is not None or self.min_free_disk is not None


class Rank(Struct, frozen=True):
    """A declared queue among the others."""

    queue: str
    importance: int = IMPORTANCE
    """Lower is more important."""
    sheds: bool = False
    """Whether it loses waiting jobs rather than fill the store (when_full="shed")."""


class StoreUse(Struct, frozen=True):
    """What a store takes, as it was measured, in bytes."""

    bytes: int
    """What is in use; room within its files that can be used again does not count."""
    free_disk: int | None = None
    """Free on its disk and within its files; None: cannot be known from here."""
    ranks: tuple[Rank, ...] = ()
    """Every queue that an App has declared."""


def fill(budget: Budget, use: StoreUse) -> float:
    """How full the store is: 1.0 is at its budget. Of the two bounds the one that is nearer."""
    return max(_of_bytes(budget, use), _of_disk(budget, use))


def starts(importances: Collection[int]) -> dict[int, float]:
    """The fill from which each importance is refused: in even steps from the least important up. The most important
    is never refused, but by the disk itself; where all queues are equally important, all are, once the store is full.
    """
    levels = sorted(set(importances), reverse=True)
    if len(levels) < 2:
        return dict.fromkeys(levels, FULL)
    less = levels[:-1]
    step = (LAST - FIRST) / max(1, len(less) - 1)
    return {level: FIRST + step * place for place, level in enumerate(less)}


def refused(importances: Collection[int], filled: float, before: Collection[int] = ()) -> frozenset[int]:
    """Which importances are refused at this fill, given those that were a moment ago."""
    return frozenset(
        level
        for level, start in starts(importances).items()
        if filled >= (start - RECOVERY if level in before else start)
    )


def fastest(looks: Sequence[tuple[float, float]]) -> float | None:
    """The fastest rise between two successive looks at (seconds, fill), a second; None with fewer than two.

    Not the trend: what begins to fill the store now is not to hide behind a calm while.
    """
    rises = [
        (after - before) / (later - at) for (at, before), (later, after) in pairwise(looks) if later > at
    ]
    return max(rises, default=None)


def look_again(
    budget: Budget, use: StoreUse, importances: Collection[int], per_second: float | None
) -> float:
    """Seconds until the store is to be measured again, so that fast producers do not run far past the fill at which
    they are refused: a quarter of the time to there at this pace, or what it takes at full speed; from 50 ms to a
    second. None: the pace is not known.
    """
    filled = fill(budget, use)
    ahead = [start for start in (*starts(importances).values(), FULL) if start > filled]
    if not ahead:
        return _LONGEST_LOOK
    # A burst may begin right after this look, whatever the pace is now.
    seconds = _left(budget, use, min(ahead)) / _BURST
    if per_second is not None and per_second > 0:
        seconds = min(seconds, (min(ahead) - filled) / per_second / 4)
    return min(_LONGEST_LOOK, max(_SHORTEST_LOOK, seconds))


def making_room(filled: float, before: bool) -> bool:
    """Whether the store is to make room: from FULL on, and then until it is below LAST."""
    return filled >= (LAST if before else FULL)


def giving_way(ranks: Iterable[Rank]) -> list[Rank]:
    """The queues that make room for the most important ones, the least important first."""
    known = list(ranks)
    most = min((rank.importance for rank in known), default=IMPORTANCE)
    return sorted(
        (rank for rank in known if rank.importance > most), key=lambda rank: (-rank.importance, rank.queue)
    )


def time_to_full(budget: Budget, history: Sequence[tuple[float, StoreUse]]) -> timedelta | None:
    """How long until the budget is spent, at the trend of these (seconds, use); 0 once it is. None: it does not fill,
    or fewer than two moments are known."""
    if not history:
        return None
    last = history[-1][1]
    if fill(budget, last) >= FULL:
        return timedelta(0)
    left = []
    if budget.max_bytes is not None:
        left.append(_reached(budget.max_bytes - last.bytes, slope((at, use.bytes) for at, use in history)))
    if budget.min_free_disk is not None:
        free = [(at, float(use.free_disk)) for at, use in history if use.free_disk is not None]
        shrinks = slope(free)
        if free and shrinks is not None:
            left.append(_reached(free[-1][1] - budget.min_free_disk, -shrinks))
    return min((span for span in left if span is not None), default=None)


def retry_after(filled: float, start: float, per_second: float | None) -> timedelta:
    """How long a refused producer waits: until the store is so empty again, at so much less of it a second. From a
    second to a minute; None: nobody knows."""
    over = filled - (start - RECOVERY)
    if not per_second or per_second >= 0 or over / -per_second >= LONGEST_WAIT.total_seconds():
        return LONGEST_WAIT
    return timedelta(seconds=max(1.0, over / -per_second))


def described(budget: Budget, use: StoreUse) -> str:
    """How full it is, in words, of the bound that is nearer."""
    if budget.max_bytes is not None and _of_bytes(budget, use) >= _of_disk(budget, use):
        share = f"{100 * use.bytes // budget.max_bytes} %"
        return f"the store takes {format_size(use.bytes)}, {share} of max_bytes={_size(budget.max_bytes)}"
    if budget.min_free_disk is None or use.free_disk is None:
        return f"the store takes {format_size(use.bytes)}"
    return f"the disk of the store has {format_size(use.free_disk)} free, min_free_disk={_size(budget.min_free_disk)}"


def _of_bytes(budget: Budget, use: StoreUse) -> float:
    return 0.0 if budget.max_bytes is None else use.bytes / budget.max_bytes


def _of_disk(budget: Budget, use: StoreUse) -> float:
    """By what must stay free, not by the size of the disk: of a large one most may be used."""
    if budget.min_free_disk is None or use.free_disk is None:
        return 0.0
    return budget.min_free_disk / max(1, use.free_disk)


def _left(budget: Budget, use: StoreUse, start: float) -> float:
    """Bytes that may still come before the store is so full."""
    left = []
    if budget.max_bytes is not None:
        left.append(start * budget.max_bytes - use.bytes)
    if budget.min_free_disk is not None and use.free_disk is not None:
        left.append(use.free_disk - budget.min_free_disk / start)
    return min(left, default=float(_BURST))


def _reached(distance: float, per_second: float | None) -> timedelta | None:
    if per_second is None or per_second <= 0 or distance / per_second >= LONGEST.total_seconds():
        return None
    return timedelta(seconds=max(0.0, distance / per_second))


def _size(size: int) -> str:
    return format_size(size).replace(" ", "")
