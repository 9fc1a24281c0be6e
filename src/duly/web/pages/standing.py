"""Which queues need somebody to look, how badly, and the one sentence that says it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final, Literal, NamedTuple

from duly.client.inspect import QueueStatus

Level = Literal["bad", "warn", "note", "good"]

_ORDER: Final = {"bad": 0, "warn": 1, "note": 2, "good": 3}
SOON: Final = timedelta(hours=6)
"""A queue that is full sooner at its slope needs somebody."""


class Standing(NamedTuple):
    """One queue as a person must see it."""

    level: Level
    word: str
    status: QueueStatus

    @property
    def name(self) -> str:
        return self.status.counts.queue


def standing_of(status: QueueStatus) -> Standing:
    """How badly one queue needs a look, in a word or two."""
    counts = status.counts
    if counts.paused:
        return Standing("warn" if counts.ready else "note", "paused", status)
    if not status.workers and (counts.ready or counts.running):
        return Standing("bad", "no worker", status)
    if status.full_in is not None and status.full_in <= SOON:
        return Standing("bad", "filling up", status)
    if status.late is not None:
        return Standing("bad", "late", status)
    if status.pressed is not None:
        return Standing("warn", "under pressure", status)
    if counts.ready and status.rates_known and status.drain is None:
        return Standing("warn", "falling behind", status)
    if counts.dead:
        return Standing("note", "dead letters", status)
    return Standing("good", "keeping up" if counts.ready or counts.running else "idle", status)


def in_order(queues: Iterable[QueueStatus]) -> list[Standing]:
    """Those with problems first, the worst and fullest of them at the top."""
    found = [standing_of(status) for status in queues]
    return sorted(found, key=lambda one: (_ORDER[one.level], -one.status.counts.ready, one.name))


def sentence(found: list[Standing]) -> tuple[Level, str]:
    """All of it in one line: the worst queue by name, and how many others need a look."""
    bad = [one for one in found if one.level in {"bad", "warn"}]
    if bad:
        others = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
        return bad[0].level, f"{bad[0].name}: {bad[0].status.health}{others}"
    dead = sum(one.status.counts.dead for one in found)
    if dead:
        few = "dead letter waits" if dead == 1 else "dead letters wait"
        return "note", f"all queues keep up; {dead:,} {few} for somebody"
    return "good", "all queues keep up, and nothing is dead"
