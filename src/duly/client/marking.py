"""What jobs say of where they come from: the trace and the correlation id of the request or the job that enqueues.

Also the place where a tracing library stands between an enqueue and the store. Knows no such library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec.structs import replace

from duly.client.job import current
from duly.core.job import NewJob, Stored
from duly.core.lifecycle import Outcome
from duly.core.trace import trigger_with
from duly.telemetry import context
from duly.telemetry.events import Happening
from duly.telemetry.moves import JobsEnqueued


class Sending(Protocol):
    """One enqueue under way."""

    traceparent: str | None
    """What its jobs carry; None: whatever they would carry without it."""

    def stored(self, stored: Sequence[Stored]) -> None:
        """How it ended, in the order of the jobs."""


class Tracer(Protocol):
    """A tracing library, as far as enqueues need it."""

    def sending(self, jobs: Sequence[NewJob]) -> AbstractContextManager[Sending]:
        """Around one round trip; an error inside is the enqueue's."""


def marked(jobs: list[NewJob], span: str | None = None) -> list[NewJob]:
    """The jobs with the trace and, where they have none, the correlation id of this context.

    `span` is the traceparent of the enqueue itself. What caused a job otherwise, as a schedule, stays.
    """
    inside = current.get()
    if inside is None:
        trace = span or context.traceparent.get()
        correlation = context.correlation.get()
        if trace is None and correlation is None:
            return jobs
        parent = None
    else:
        trace, correlation = span or inside.traceparent, None
        if trace is None:
            return jobs
        parent = inside.id if isinstance(inside.id, int) else None
    trigger = None if trace is None else trigger_with(trace, parent)
    return [_marked(job, trigger, correlation) for job in jobs]


def told(tell: Callable[[Happening], None], jobs: Sequence[NewJob], stored: Sequence[Stored]) -> None:
    """Say what an enqueue came to, for each task of each queue."""
    found: dict[tuple[str, str], list[int]] = {}
    for job, one in zip(jobs, stored, strict=True):
        numbers = found.setdefault((job.queue, job.task), [0, 0])
        numbers[one.outcome is not Outcome.created] += 1
    for (queue, task), (new, duplicates) in found.items():
        tell(JobsEnqueued(queue, task, new, duplicates))


def _marked(job: NewJob, trigger: str | None, correlation: str | None) -> NewJob:
    then, on_dead = job.then, job.on_dead
    if then or on_dead:
        # Follow-ups take the correlation id of the job before them by themselves.
        then = tuple(_marked(one, trigger, None) for one in then)
        on_dead = tuple(_marked(one, trigger, None) for one in on_dead)
    return replace(
        job,
        trigger=job.trigger or trigger,
        correlation_id=job.correlation_id or correlation,
        then=then,
        on_dead=on_dead,
    )
