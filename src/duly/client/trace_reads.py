"""The whole work of one correlation id: every job with its attempts, who enqueued whom, and all of it in time order.

The tracing part of `inspect`. Reads through the store's inspection protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, Literal

import msgspec

from duly.client.control_reads import ControlReads
from duly.client.options import whole_number
from duly.client.showing import shown
from duly.client.twins import blocking, twin
from duly.core.errors import NotFound
from duly.core.filters import Filter
from duly.core.job import AttemptRecord, JobId, JobRecord
from duly.core.lifecycle import FINAL, State
from duly.core.trace import parent_of

MOST: Final = 5_000
"""Jobs of one trace; what comes after them is left out, and said so."""
_PAGE: Final = 500
_LARGEST: Final = 2**63 - 1

What = Literal["enqueued", "started", "ended", "due"]


class TracedJob(msgspec.Struct, frozen=True):
    """One job of a trace."""

    job: JobRecord
    attempts: tuple[AttemptRecord, ...]
    """Those recorded, oldest first; a job that completed in its first run has none."""
    parent: JobId | None
    """In whose handler it was enqueued, where that is known: where the enqueue was traced."""
    depth: int
    """0: enqueued from outside."""


class Moment(msgspec.Struct, frozen=True):
    """Something that happened to a job of the trace, or will."""

    at: datetime
    job: JobId
    what: What
    text: str
    depth: int


class Trace(msgspec.Struct, frozen=True):
    """Everything that is kept of one correlation id."""

    correlation_id: str
    jobs: tuple[TracedJob, ...]
    """Each behind the one that enqueued it; siblings in the order of their enqueues."""
    moments: tuple[Moment, ...]
    """In time order."""
    more: bool = False
    """There are more jobs than are read at once."""

    @property
    def unfinished(self) -> int:
        """Jobs that have not ended."""
        return sum(1 for traced in self.jobs if traced.job.state not in FINAL)


class TraceReads(ControlReads):
    """Part of `Inspect`."""

    @blocking
    def trace(self, id: str | int, *, limit: int = MOST) -> Trace:
        """All that belongs together: `id` is a correlation id, or the number of any job of it.

        NotFound when nothing of it is kept. Of more than `limit` jobs, 5,000 at most, the first ones.
        """
        correlation = self._correlation(str(id))
        records, more = self._members(correlation, min(whole_number(limit, "limit"), MOST))
        if not records:
            raise NotFound(
                f"nothing is kept of {correlation!r:.80}: give a correlation id or a job's number; finished work is "
                "kept for a day unless its queue says otherwise",
                kind="trace",
                name=correlation,
            )
        jobs = tuple(self._traced(records))
        first = _first_words(jobs)
        moments = sorted(
            (moment for traced in jobs for moment in _moments(traced, first.get(traced.job.id))),
            key=lambda moment: moment.at,
        )
        return Trace(correlation, jobs, tuple(moments), more)

    def _correlation(self, text: str) -> str:
        """A number that is a job means the work of that job."""
        if text.isascii() and text.isdecimal() and int(text) <= _LARGEST:
            found = self._client.store.inspection.lookup([JobId(int(text))])[0]
            if found is not None:
                return found.correlation_id
        return text

    def _members(self, correlation: str, most: int) -> tuple[list[JobRecord], bool]:
        found: list[JobRecord] = []
        after: int | None = 0
        while after is not None:
            page = self._client.store.inspection.page(
                Filter(correlation=correlation), after=after, limit=min(_PAGE, most)
            )
            found += map(shown, page.jobs)
            after = page.next
            if len(found) >= most:
                return found[:most], after is not None or len(found) > most
        return found, False

    def _traced(self, records: list[JobRecord]) -> Iterator[TracedJob]:
        known = {record.id for record in records}
        families: dict[JobId | None, list[JobRecord]] = {}
        for record in records:
            said = parent_of(record.trigger)
            # An older number only: whatever a trigger says, nobody is his own ancestor.
            parent = JobId(said) if said is not None and said in known and said < record.id else None
            families.setdefault(parent, []).append(record)
        waiting = [(record, None, 0) for record in reversed(families.get(None, []))]
        stack: list[tuple[JobRecord, JobId | None, int]] = [*waiting]
        while stack:
            record, parent, depth = stack.pop()
            yield TracedJob(record, self._attempts(record), parent, depth)
            stack += [(child, record.id, depth + 1) for child in reversed(families.get(record.id, []))]

    def _attempts(self, record: JobRecord) -> tuple[AttemptRecord, ...]:
        if not record.run or (record.run == 1 and record.state is State.completed):
            return ()
        return tuple(self._client.store.inspection.attempts(record.id))

    atrace = twin(trace)


def _first_words(jobs: Iterable[TracedJob]) -> dict[JobId, list[datetime]]:
    """When each job enqueued others."""
    found: dict[JobId, list[datetime]] = {}
    for traced in jobs:
        if traced.parent is not None:
            found.setdefault(traced.parent, []).append(traced.job.enqueued_at)
    return found


def _moments(traced: TracedJob, enqueues: list[datetime] | None) -> Iterable[Moment]:
    job, depth = traced.job, traced.depth
    by = "" if traced.parent is None else f" by job {traced.parent}"
    yield Moment(job.enqueued_at, job.id, "enqueued", f"enqueued on {job.queue}{by}", depth)
    for attempt in traced.attempts:
        if attempt.started_at is not None:
            yield Moment(attempt.started_at, job.id, "started", f"run {attempt.run} started", depth)
        yield Moment(attempt.ended_at, job.id, "ended", _ended(attempt), depth)
    told = any(attempt.run == job.run for attempt in traced.attempts)
    if job.started_at is not None and not told and job.state in FINAL | {State.running}:
        yield Moment(
            _begun(traced, job.started_at, enqueues), job.id, "started", f"run {job.run} started", depth
        )
    if job.finished_at is not None and not (told and _same_end(traced)):
        yield Moment(job.finished_at, job.id, "ended", _final(job), depth)
    if job.state is State.scheduled and job.run_at is not None:
        yield Moment(job.run_at, job.id, "due", "due", depth)


def _begun(traced: TracedJob, started: datetime, enqueues: list[datetime] | None) -> datetime:
    """When the last run began: before what it enqueued. A store knows it only from the moment at which it heard of the
    end, which may be later than the end."""
    before = max((attempt.ended_at for attempt in traced.attempts), default=traced.job.enqueued_at)
    return min([started, *(at for at in enqueues or () if at > before)])


def _same_end(traced: TracedJob) -> bool:
    """Whether the record of the last attempt says what became of the job, too."""
    return any(attempt.ended_at == traced.job.finished_at for attempt in traced.attempts)


def _ended(attempt: AttemptRecord) -> str:
    why = attempt.reason or ""
    if attempt.error is not None:
        why = f"{attempt.error.type}: {attempt.error.message}"
    return f"run {attempt.run}: {attempt.event}" + (f", {why}" if why else "")


def _final(job: JobRecord) -> str:
    return f"{job.state}, {job.reason}" if job.reason else str(job.state)
