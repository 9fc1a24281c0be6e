"""Which jobs a bulk act is about, walked upwards by id in bounded pages.

Reads only. A job that changes state meanwhile may be met twice or, rarely, not at all; acts check each one again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Final, Literal, NamedTuple

import msgspec

from duly.core.errors import UsageError
from duly.core.filters import Filter
from duly.core.job import JobId, JobRecord
from duly.core.lifecycle import State
from duly.stores.protocol import InspectionStore

Verb = Literal["cancel", "redrive", "purge"]

PAGE: Final = 500
SEARCH_BUDGET: Final = 0.150
"""Seconds one look for matching jobs may take."""
VERBS: Final[tuple[Verb, ...]] = ("cancel", "redrive", "purge")

# In the order in which jobs move, and the first again at the end: one that is claimed or sent back for a retry
# between two reads is met in its next state.
_STATES: Final[dict[str, tuple[State, ...]]] = {
    "cancel": (State.scheduled, State.blocked, State.ready, State.running, State.scheduled),
    "redrive": (State.dead,),
    "purge": (State.dead,),
}
_ALLOWED: Final[dict[str, frozenset[State]]] = {
    "cancel": frozenset(_STATES["cancel"]),
    "redrive": frozenset({State.dead, State.cancelled, State.skipped}),
    "purge": frozenset({State.dead}),
}


class Step(NamedTuple):
    """One stretch of the walk."""

    ids: tuple[JobId, ...]
    cursor: int
    """Every job up to this id was looked at."""
    ended: bool


def check_states(verb: str, filter: Filter) -> None:
    """UsageError when the filter asks for jobs that the verb cannot move."""
    if filter.state is not None and filter.state not in _ALLOWED[verb]:
        allowed = ", ".join(sorted(_ALLOWED[verb]))
        raise UsageError(
            f"{verb} moves jobs that are {allowed}; state={filter.state} never matches, leave it out"
        )


def step(
    store: InspectionStore,
    verb: str,
    filter: Filter,
    cursor: int,
    upto: int | None,
    most: int,
    ended_by: datetime | None = None,
) -> Step:
    """At most `most` jobs above the cursor that the filter and the verb mean, of dead ones those dead by a moment."""
    states = _STATES[verb] if filter.state is None else (filter.state,)
    reached = upto
    found: set[JobId] = set()
    for state in states:
        page = store.page(msgspec.structs.replace(filter, state=state), after=cursor, limit=min(most, PAGE))
        if page.next is not None:
            reached = page.next if reached is None else min(reached, page.next)
        found.update(job.id for job in page.jobs if _meant(job, filter, ended_by))
    ids = sorted(id for id in found if reached is None or id <= reached)
    if len(ids) > most:
        return Step(tuple(ids[:most]), ids[most - 1], ended=False)
    ended = reached is None or reached == upto
    return Step(tuple(ids), max(ids, default=cursor) if reached is None else reached, ended=ended)


def search(
    store: InspectionStore,
    verb: str,
    filter: Filter,
    cursor: int,
    upto: int | None,
    most: int,
    ended_by: datetime | None = None,
) -> Step:
    """As `step`, over as many pages as it takes to meet a job, for about `SEARCH_BUDGET` seconds."""
    until = time.monotonic() + SEARCH_BUDGET
    while True:
        stretch = step(store, verb, filter, cursor, upto, most, ended_by)
        if stretch.ids or stretch.ended or time.monotonic() >= until:
            return stretch
        cursor = stretch.cursor


def _meant(job: JobRecord, filter: Filter, ended_by: datetime | None) -> bool:
    if job.cancel_wished or (filter.where is not None and not filter.matches(job)):
        return False
    return ended_by is None or job.finished_at is None or job.finished_at <= ended_by


def walk(store: InspectionStore, verb: str, filter: Filter, most: int | None = None) -> Iterator[JobId]:
    """Every job the filter and the verb mean, oldest first, at most `most`."""
    cursor, left = 0, most
    while left is None or left > 0:
        stretch = step(store, verb, filter, cursor, None, PAGE if left is None else min(PAGE, left))
        yield from stretch.ids
        if stretch.ended:
            return
        cursor = stretch.cursor
        left = None if left is None else left - len(stretch.ids)


def count(store: InspectionStore, verb: str, filter: Filter) -> int:
    """How many jobs are meant; by one statement where the store can count them."""
    if filter.where is None and _STATES[verb] == (State.dead,) and filter.state in {None, State.dead}:
        edited = verb == "redrive"
        return sum(group.count - edited * group.edited for group in store.dead_groups(filter))
    return sum(1 for _ in walk(store, verb, filter))
