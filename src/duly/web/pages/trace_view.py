"""The work of one correlation id as the page shows it: the tree with its bars, and the moments. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final, Literal

from msgspec import Struct

from duly.client.trace_reads import Moment, Trace, TracedJob
from duly.core.job import JobId
from duly.core.lifecycle import FINAL, State
from duly.web.pages.control_view import Allowed, Tone, sees

WIDE: Final = 1000
"""Units from the first moment to the last."""
DEEPEST: Final = 12
"""Further down, nothing is moved in any more."""
_THIN: Final = 2.0
"""Units that a bar takes at least."""


class Bar(Struct, frozen=True):
    """A stretch of time of one job."""

    kind: Literal["wait", "run", "good", "bad"]
    x: float
    width: float


class TraceRow(Struct, frozen=True):
    """One job."""

    id: int
    task: str
    queue: str
    state: State
    depth: int
    parent: int | None
    enqueued: datetime
    waited: timedelta | None
    """From its enqueue to its first start."""
    ran: timedelta | None
    """Its last run."""
    runs: int
    bars: tuple[Bar, ...]
    words: str
    """What the bars show."""
    cancel_wished: bool = False


class MomentRow(Struct, frozen=True):
    """Something that happened, or will."""

    at: datetime
    after: timedelta
    """Since the first moment."""
    job: int
    task: str
    text: str
    depth: int
    tone: Tone
    ahead: bool


class TraceView(Struct, frozen=True):
    """All of the page."""

    correlation: str
    rows: tuple[TraceRow, ...]
    moments: tuple[MomentRow, ...]
    unfinished: int
    took: timedelta
    """From the first moment to the last, or to now."""
    more: bool
    hidden: int
    """Jobs in queues that the visitor may not see."""


def trace_view(read: Trace, now: datetime, *, allowed: Allowed = None) -> TraceView:
    jobs = [traced for traced in read.jobs if sees(allowed, traced.job.queue)]
    shown = {traced.job.id: traced for traced in jobs}
    moments = [moment for moment in read.moments if moment.job in shown]
    unfinished = sum(1 for traced in jobs if traced.job.state not in FINAL)
    past = [moment.at for moment in moments if moment.at <= now] or [now]
    first = min(past)
    last = now if unfinished else max(past)
    scale = _Scale(first, max(last - first, timedelta(microseconds=1)))
    return TraceView(
        read.correlation_id,
        tuple(_row(traced, shown, scale, last) for traced in jobs),
        tuple(
            MomentRow(
                at=moment.at,
                after=moment.at - first,
                job=moment.job,
                task=shown[moment.job].job.task,
                text=moment.text,
                depth=min(moment.depth, DEEPEST),
                tone=_tone(moment, shown[moment.job]),
                ahead=moment.at > now,
            )
            for moment in moments
        ),
        unfinished,
        last - first,
        read.more,
        len(read.jobs) - len(jobs),
    )


class _Scale(Struct, frozen=True):
    first: datetime
    span: timedelta

    def bar(self, kind: Literal["wait", "run", "good", "bad"], start: datetime, end: datetime) -> Bar:
        x = min(max((start - self.first) / self.span * WIDE, 0.0), WIDE - _THIN)
        width = max(_THIN, (end - start) / self.span * WIDE)
        return Bar(kind, round(x, 1), round(min(width, WIDE - x), 1))


def _row(traced: TracedJob, shown: Mapping[JobId, TracedJob], scale: _Scale, last: datetime) -> TraceRow:
    job = traced.job
    spans = list(_runs(traced, last))
    start = spans[0][1] if spans else None
    ran = spans[-1][2] - spans[-1][1] if spans else None
    waited = None if start is None else max(start - job.enqueued_at, timedelta(0))
    until = start if start is not None else (job.finished_at or last)
    bars = [scale.bar("wait", job.enqueued_at, max(until, job.enqueued_at))]
    bars += [scale.bar(kind, begun, ended) for kind, begun, ended in spans]
    return TraceRow(
        id=job.id,
        task=job.task,
        queue=job.queue,
        state=job.state,
        depth=min(traced.depth, DEEPEST),
        parent=traced.parent if traced.parent in shown else None,
        enqueued=job.enqueued_at,
        waited=waited,
        ran=ran,
        runs=job.run,
        bars=tuple(bars),
        words=_words(waited, ran, job.run),
        cancel_wished=job.cancel_wished,
    )


def _runs(
    traced: TracedJob, last: datetime
) -> Iterator[tuple[Literal["run", "good", "bad"], datetime, datetime]]:
    """Each run with its begin and its end."""
    job = traced.job
    recorded = set()
    for attempt in traced.attempts:
        if attempt.started_at is not None:
            recorded.add(attempt.run)
            kind: Literal["good", "bad"] = "bad" if attempt.error is not None else "good"
            yield kind, attempt.started_at, max(attempt.ended_at, attempt.started_at)
    if job.started_at is None or job.run in recorded:
        return
    if job.state is State.running:
        yield "run", job.started_at, max(last, job.started_at)
    elif job.finished_at is not None:
        done: Literal["good", "bad"] = "good" if job.state is State.completed else "bad"
        yield done, job.started_at, max(job.finished_at, job.started_at)


def _words(waited: timedelta | None, ran: timedelta | None, runs: int) -> str:
    if waited is None:
        return "has not started"
    tries = f", {runs} runs" if runs > 1 else ""
    took = "" if ran is None else f", ran {ran.total_seconds():.1f} s"
    return f"waited {waited.total_seconds():.1f} s{took}{tries}"


def _tone(moment: Moment, traced: TracedJob) -> Tone:
    match moment.what:
        case "ended":
            failed = any(one.error is not None and one.ended_at == moment.at for one in traced.attempts)
            if failed or (
                moment.at == traced.job.finished_at and traced.job.state in {State.dead, State.shed}
            ):
                return "bad"
            return "good" if moment.at == traced.job.finished_at else "note"
        case "started":
            return "note"
    return "warn"
