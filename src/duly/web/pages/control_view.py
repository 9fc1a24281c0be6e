"""Limits, resources, breakers, holds and overrides as the pages show them: records in, rows out. Pure.

Knows no request; `limits.py` and `tenants.py` read and act.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, Literal

from msgspec import Struct

from duly.core.control import BreakerState, LimitRecord, Override
from duly.core.control_words import LimitKind, change_text, filled, limit_target, rate_text

Tone = Literal["good", "bad", "warn", "note"]
Allowed = frozenset[str] | None
"""The queues that a visitor may see; None: all, and what belongs to no queue."""

_ORDER: Final[dict[LimitKind, int]] = {
    "queue": 0, "task": 1, "argument": 2, "tenant": 3, "lock": 4, "resource": 5,
}  # fmt: skip


class LimitRow(Struct, frozen=True):
    """One limit, as it stands."""

    name: str
    kind: LimitKind
    about: str
    """The queue, task, resource, tenant or lock."""
    queue: str | None
    running: int
    max_running: int | None
    full: bool
    rate: str | None
    waiting: str
    waits: int
    opens: datetime | None
    """When the next one may start; None: now, or when another ends."""
    word: str
    """Why nothing starts now, in a word or two; "" while something may."""
    tone: Tone
    override: int | None
    breaker: BreakerState | None = None
    breaker_until: datetime | None = None
    held_until: datetime | None = None
    held_by: str | None = None
    held_reason: str | None = None

    @property
    def stands(self) -> str:
        """How its breaker stood when it was shown."""
        return self.breaker or "none"


class OverrideRow(Struct, frozen=True):
    """One change for a time."""

    id: int
    target: str
    queue: str | None
    kind: str
    change: str
    by: str
    reason: str
    at: datetime
    until: datetime | None

    @property
    def endless(self) -> bool:
        """Nobody will end it but a person."""
        return self.until is None


class LimitsView(Struct, frozen=True):
    """All of the page."""

    limits: tuple[LimitRow, ...]
    """Of queues, tasks, arguments, tenants and locks: those that hold something back first."""
    resources: tuple[LimitRow, ...]
    overrides: tuple[OverrideRow, ...]
    more: bool
    """There are more limits than are read at once."""

    @property
    def endless(self) -> int:
        return sum(1 for one in self.overrides if one.endless)


def limits_view(
    limits: Sequence[LimitRecord],
    overrides: Iterable[Override],
    now: datetime,
    *,
    allowed: Allowed = None,
    words: str = "",
    most: int = 10**9,
) -> LimitsView:
    """`words`: only what has them in its name; `most`: so many limits were asked for."""
    rows = [
        row
        for row in (limit_row(limit, now) for limit in limits)
        if sees(allowed, row.queue) and words.lower() in row.name.lower()
    ]
    rows.sort(key=lambda row: (not row.word, -row.waits, _ORDER[row.kind], row.name))
    return LimitsView(
        tuple(row for row in rows if row.kind != "resource"),
        tuple(
            sorted((row for row in rows if row.kind == "resource"), key=lambda row: (not row.word, row.name))
        ),
        override_rows(overrides, allowed),
        len(limits) >= most,
    )


def override_rows(overrides: Iterable[Override], allowed: Allowed) -> tuple[OverrideRow, ...]:
    """Those without an end first, then the newest first."""
    rows = [row for row in map(override_row, overrides) if sees(allowed, row.queue)]
    return tuple(sorted(rows, key=lambda row: (not row.endless, -row.id)))


def override_row(one: Override) -> OverrideRow:
    target = limit_target(one.target)
    return OverrideRow(
        one.id,
        one.target,
        target.queue or None,
        one.kind,
        change_text(one) or "nothing",
        one.by,
        one.reason,
        one.at,
        one.until,
    )


def limit_row(limit: LimitRecord, now: datetime) -> LimitRow:
    target = limit_target(limit.name)
    about = target.name
    if target.kind == "argument":
        about = f"{target.name}, {target.argument}" + ("" if target.value is None else f" = {target.value}")
    elif target.kind == "tenant":
        about = f"{target.name or 'each tenant'} in {target.queue or 'every queue'}"
    share = filled(limit)
    full = share is not None and share >= 1
    word, tone = _held_back(limit, now, full=full)
    return LimitRow(
        limit.name,
        target.kind,
        about,
        target.queue or None,
        limit.running,
        limit.max_running,
        full,
        rate_text(limit.rate),
        waiting_text(limit.waiting),
        limit.waiting,
        limit.next_at if limit.next_at is not None and limit.next_at > now else None,
        word,
        tone,
        limit.override,
        limit.breaker,
        limit.breaker_until,
        limit.held_until if limit.held_until is not None and limit.held_until > now else None,
        limit.held_by,
        limit.held_reason,
    )


def waiting_text(number: int) -> str:
    """A number that was counted to 10,000."""
    return "10,000 or more" if number >= 10_000 else f"{number:,}"


def sees(allowed: Allowed, queue: str | None) -> bool:
    """Whether a visitor with these queues may see what is of that one; None: of none."""
    return allowed is None or queue in allowed


def _held_back(limit: LimitRecord, now: datetime, *, full: bool) -> tuple[str, Tone]:
    if limit.breaker == "open":
        return "breaker open", "bad"
    if limit.held_until is not None and limit.held_until > now:
        return "held", "warn"
    if limit.breaker == "half-open":
        return "breaker tries one", "warn"
    if full and limit.waiting:
        return "full", "warn"
    if limit.waiting and limit.next_at is not None and limit.next_at > now:
        return "at its rate", "note"
    return "", "good"
