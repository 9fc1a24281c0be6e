"""One screen of `duly top`, as lines that fit: queues in trouble first, what will become of them, what runs.

Pure: no terminal, no clock, no store.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import click
from msgspec import Struct

from duly.client.inspect import QueueStatus, Status
from duly.core.job import JobRecord

from .jobs import begun
from .output import Column, age, count, counted, cut, printable, rate, table, width_of
from .status import headline, sentences

KEYS: Final = "q quit  up/down choose  p pause  r resume"
_COLUMNS: Final = (
    Column("QUEUE"),
    Column("READY", "right"),
    Column("LATER", "right"),
    Column("RUN", "right"),
    Column("DEAD", "right"),
    Column("OLDEST", "right"),
    Column("IN/s", "right"),
    Column("OUT/s", "right"),
    Column("SLOPE", "right"),
    Column("DRAIN", "right"),
    Column(""),
)
_RUNNING: Final = (
    Column("RUNNING", "right"),
    Column("QUEUE"),
    Column("TASK"),
    Column("TRY", "right"),
    Column("FOR", "right"),
    Column("PROGRESS"),
)
_QUEUE_WIDTH: Final = 16
_TASK_WIDTH: Final = 24
_SENTENCES: Final = 6
_LEAST_JOBS: Final = 4
"""So many lines are kept for running jobs, however many queues there are."""


class View(Struct, frozen=True):
    """What a person has chosen to see."""

    columns: int
    rows: int
    chosen: str | None = None
    """A queue."""
    said: str = ""
    """The last line instead of the keys: a question, or what came of an act."""


def order(queues: Sequence[QueueStatus]) -> list[QueueStatus]:
    """Those that need somebody first, then by how much waits."""
    return sorted(queues, key=lambda queue: (not _troubled(queue), -queue.counts.ready, queue.counts.queue))


def frame(status: Status, jobs: Sequence[JobRecord], view: View) -> list[str]:
    """At most so many lines of at most so many columns."""
    queues = order(status.queues)
    told = [line for text in sentences(status) for line in textwrap.wrap(printable(text), view.columns)]
    told = told[:_SENTENCES]
    running = _jobs(jobs, status.now) if jobs else []
    # Beside the first and the last line: a heading, and a line for what does not fit.
    room = view.rows - 4 - len(told) - (1 + min(len(running), _LEAST_JOBS) if running else 0)
    rows = _table(queues, view.chosen, max(1, room))
    lines = [cut(headline(status), view.columns), *rows, *told]
    left = view.rows - 1 - len(lines)
    if running and left > 2:
        lines += ["", *running[: left - 1]]
    lines = [_clipped(line, view.columns) for line in lines[: view.rows - 1]]
    lines += [""] * (view.rows - 1 - len(lines))
    return [*lines, _clipped(view.said or click.style(KEYS, dim=True), view.columns)]


def number(value: int, *, estimated: bool = False) -> str:
    """A count in six columns: 99,999, then 123k, 5.2M."""
    if value < 100_000:
        text = count(value)
    elif value < 1_000_000:
        text = f"{value // 1000}k"
    else:
        text = f"{value / 1_000_000:.1f}M" if value < 100_000_000 else f"{value // 1_000_000}M"
    return f"~{text}" if estimated else text


def _troubled(queue: QueueStatus) -> bool:
    healthy = queue.health == "idle" or queue.health.startswith("keeping up")
    return not healthy or queue.counts.dead > 0 or queue.late is not None or queue.pressed is not None


def _table(queues: Sequence[QueueStatus], chosen: str | None, most: int) -> list[str]:
    names = [queue.counts.queue for queue in queues]
    at = names.index(chosen) if chosen in names else 0
    # The chosen one stays in sight.
    first = max(0, min(at - most // 2, len(queues) - most))
    shown = queues[first : first + most]
    heading, *rows = table(_COLUMNS, (_row(queue) for queue in shown))
    marked = [
        click.style(click.unstyle(row), reverse=True) if queue.counts.queue == chosen else row
        for queue, row in zip(shown, rows, strict=True)
    ]
    hidden = len(queues) - len(shown)
    return [heading, *marked, *([f"and {counted(hidden, 'queue')} more"] if hidden else [])]


def _row(queue: QueueStatus) -> list[str]:
    counts = queue.counts
    later = counts.scheduled + counts.blocked
    slope = "-" if counts.slope_per_s is None else rate(counts.slope_per_s)
    return [
        cut(printable(counts.queue), _QUEUE_WIDTH),
        number(counts.ready, estimated="ready" in counts.estimated),
        number(later, estimated=bool({"scheduled", "blocked"} & set(counts.estimated))),
        number(counts.running),
        number(counts.dead, estimated="dead" in counts.estimated),
        _short(counts.oldest_ready),
        rate(counts.in_per_s),
        rate(counts.out_per_s),
        f"+{slope}" if (counts.slope_per_s or 0) > 0 else slope,
        _drain(queue),
        "paused" if counts.paused else "late" if queue.late is not None else "",
    ]


def _drain(queue: QueueStatus) -> str:
    if not queue.counts.ready:
        return "-"
    if queue.drain is not None:
        return _short(queue.drain)
    return "never" if queue.rates_known else "?"


def _short(span: timedelta | None) -> str:
    """A span in one unit."""
    return age(span).partition(" ")[0]


def _jobs(jobs: Sequence[JobRecord], now: datetime) -> list[str]:
    return table(_RUNNING, (_job(job, now) for job in jobs))


def running_for(job: JobRecord, now: datetime) -> str:
    return "-" if job.started_at is None else age(now - job.started_at)


def progress_of(job: JobRecord) -> str:
    """How far it says it is."""
    if job.progress is None:
        return ""
    of = "" if job.progress.of is None else f"/{count(job.progress.of)}"
    note = f" {printable(job.progress.note)}" if job.progress.note else ""
    return f"{count(job.progress.done)}{of}{note}"


def _job(job: JobRecord, now: datetime) -> list[str]:
    return [
        str(job.id),
        cut(printable(job.queue), _QUEUE_WIDTH),
        cut(printable(job.task), _TASK_WIDTH),
        str(begun(job)),
        running_for(job, now),
        cut(progress_of(job), 60),
    ]


def _clipped(line: str, columns: int) -> str:
    """The line as it is, or its beginning without styles."""
    if width_of(line) <= columns:
        return line
    text = click.unstyle(line)
    kept, taken = "", 0
    for character in text:
        taken += width_of(character)
        if taken > columns - 1:
            break
        kept += character
    kept += "…"
    return click.style(kept, reverse=True) if "\x1b[7m" in line else kept
