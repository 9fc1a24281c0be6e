"""The budget of the store, as producers meet it and as `inspect` shows it: who gives way, and when it will be full.

Measures nothing itself: asks the store about once a second while jobs are enqueued, more often while it fills fast.
Knows neither drafts nor workers.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from duly.core.bounds import SAMPLE_AGE
from duly.core.budget import (
    Budget,
    Rank,
    StoreUse,
    described,
    fastest,
    fill,
    look_again,
    refused,
    retry_after,
    starts,
    time_to_full,
)
from duly.core.defaults import IMPORTANCE
from duly.core.durations import format_duration
from duly.core.pressure import slope

if TYPE_CHECKING:
    from duly.client.client import Client
    from duly.client.registry import Registry
    from duly.stores.control import PressingStore

_LOOKS: Final = 100
"""Looks of this process from which it tells how fast the store fills."""
_RECENT: Final = 5.0
_HISTORY: Final = timedelta(minutes=10)


class Refuses(Protocol):
    """Where the answer goes."""

    def refuse_below(self, importance: int | None, why: str = ..., retry_after: timedelta = ...) -> None: ...


class BudgetGate:
    """Refuses less important queues while the store is near its budget, and lets them in again."""

    def __init__(
        self,
        budget: Budget,
        registry: Registry,
        store: Callable[[], PressingStore],
        pressing: Refuses,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._budget = budget
        self._registry = registry
        self._store = store
        self._pressing = pressing
        self._clock = clock
        self._refused: frozenset[int] = frozenset()
        self._fills: deque[tuple[float, float]] = deque(maxlen=_LOOKS)
        self._every = SAMPLE_AGE.total_seconds()

    def look(self) -> float:
        """Ask the store what it takes and decide anew; blocks for a round trip. The seconds to the next look."""
        use = self._store().use(timedelta(seconds=self._every))
        if use is None:
            return self._every
        filled = fill(self._budget, use)
        self._fills.append((self._clock(), filled))
        levels = importances(use.ranks, self._registry)
        self._refused = refused(levels, filled, self._refused)
        if self._refused:
            least = min(self._refused)
            after = retry_after(filled, starts(levels)[least], slope(self._fills))
            self._pressing.refuse_below(least - 1, described(self._budget, use), after)
        else:
            self._pressing.refuse_below(None)
        now = self._clock()
        recent = [one for one in self._fills if now - one[0] <= _RECENT]
        self._every = look_again(self._budget, use, levels, fastest(recent))
        return self._every


class StoreRoom(msgspec.Struct, frozen=True):
    """How much of its budget a store has spent. Sizes in bytes."""

    used: int
    """What is in use; on SQLite of the whole file, on PostgreSQL of duly's tables, as a sample tells."""
    max_bytes: int | None
    free_disk: int | None
    """With the room inside the file that can be used again; None: it cannot be known from here."""
    min_free_disk: int | None
    filled: float
    """1.0: the budget is spent."""
    full_in: timedelta | None
    """At the pace of the last minutes; None: it does not fill, or workers have not measured it for long enough."""
    refused: tuple[str, ...]
    """Declared queues that take no more jobs for now, the least important first."""
    health: str
    """One sentence."""


def room_of(client: Client) -> StoreRoom | None:
    """Ask the store; None without a budget, or while it is being measured for the first time."""
    budget = client.settings.budget
    if not budget:
        return None
    pressing = client.store.pressing
    use = pressing.use()
    if use is None:
        return None
    history = [(at.timestamp(), past) for at, past in pressing.uses(_HISTORY)]
    full_in = time_to_full(budget, [*history, (client.store.inspection.now().timestamp(), use)])
    filled = fill(budget, use)
    ranks = _ranks(use.ranks, client.registry)
    levels = refused({rank.importance for rank in ranks}, filled)
    names = tuple(
        rank.queue for rank in sorted(ranks, key=lambda rank: -rank.importance) if rank.importance in levels
    )
    return StoreRoom(
        used=use.bytes,
        max_bytes=budget.max_bytes,
        free_disk=use.free_disk,
        min_free_disk=budget.min_free_disk,
        filled=filled,
        full_in=full_in,
        refused=names,
        health=_health(budget, use, filled, full_in, names),
    )


def importances(ranks: Iterable[Rank], registry: Registry) -> set[int]:
    """Those of all declared queues, of this App and of others."""
    return {rank.importance for rank in _ranks(ranks, registry)} or {IMPORTANCE}


def _ranks(stored: Iterable[Rank], registry: Registry) -> list[Rank]:
    """What this App declares goes before what was stored, perhaps by another release."""
    ranks = {rank.queue: rank for rank in stored}
    for name, queue in registry.queues.items():
        sheds = queue.bound is not None and queue.bound.when_full == "shed"
        ranks[name] = Rank(name, queue.importance, sheds)
    for task in registry.tasks.values():
        ranks.setdefault(task.queue, Rank(task.queue))
    return [ranks[name] for name in sorted(ranks)]


def _health(
    budget: Budget, use: StoreUse, filled: float, full_in: timedelta | None, names: tuple[str, ...]
) -> str:
    said = described(budget, use)
    if filled >= 1:
        said += "; its budget is spent"
    elif full_in is not None:
        said += f"; full in {format_duration(timedelta(seconds=round(full_in.total_seconds())))} at the present pace"
    if names:
        said += f"; refused for now: {', '.join(names)}"
    return said
