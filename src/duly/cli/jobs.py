"""`duly jobs`: the jobs that fit a filter, newest first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

import click

from duly.client.inspect import JobPage
from duly.core.filters import Filter
from duly.core.job import JobRecord
from duly.core.lifecycle import WAITING, State

from .options import common, filters
from .output import Column, Json, Out, clock, count, plain, printable, relative
from .session import session_of

COLUMNS = (
    Column("ID", "right"),
    Column("STATE"),
    Column("QUEUE"),
    Column("TASK"),
    Column("ATTEMPTS", "right"),
    Column("ENQUEUED"),
    Column("ABOUT", wide=True),
)

SORTS: Final[dict[str, Callable[[JobRecord], str | int | float]]] = {
    "id": lambda job: -job.id,
    "state": lambda job: job.state,
    "queue": lambda job: job.queue,
    "task": lambda job: job.task,
    "priority": lambda job: job.priority,
    "enqueued": lambda job: job.enqueued_at.timestamp(),
}


@click.command()
@common
@filters
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="At most so many."
)
@click.option("--before", type=int, metavar="ID", help="Go on below this job.")
@click.option(
    "--sort",
    type=click.Choice(list(SORTS)),
    default="id",
    help="Order of the lines; the newest are taken first.",
)
@click.pass_context
def jobs(
    context: click.Context, filter: Filter, everything: bool, limit: int, before: int | None, sort: str
) -> None:
    """Jobs that fit, newest first.

    \b
      duly jobs --queue mail --state dead --since 3h
      duly jobs --task send_receipt --where 'args.order_id = 7'
      duly jobs --correlation order-7 -o ndjson
    """
    del everything
    session = session_of(context)
    app = session.data()
    page = app.inspect.jobs(filter, before=before, limit=limit)
    chosen = sorted(page.jobs, key=SORTS[sort])
    document: Json = {
        "jobs": [plain(job) for job in chosen],
        "next": page.next,
        "searched_back_to": plain(page.searched_back_to),
        "encrypted": page.encrypted,
    }
    now = app.client.call(app.store.inspection.now)
    session.out.answer(
        document, lambda: _lines(chosen, page, now, session.out), (plain(job) for job in chosen)
    )


def _lines(chosen: list[JobRecord], page: JobPage, now: datetime, out: Out) -> list[str]:
    text = out.table(COLUMNS, (row(job, now) for job in chosen)) if chosen else []
    if out.quiet:
        return text
    if not chosen:
        text.append("no job fits")
    if page.searched_back_to is not None:
        text.append(f"searched back to {clock(page.searched_back_to, now)}; older: add --before {page.next}")
    elif page.next is not None:
        text.append(f"{count(len(chosen))} shown; older: add --before {page.next}")
    if page.encrypted:
        are = "job is" if page.encrypted == 1 else "jobs are"
        text.append(f"{count(page.encrypted)} {are} encrypted: --where cannot see their arguments")
    return text


def row(job: JobRecord, now: datetime) -> list[str]:
    """One job as cells."""
    return [
        str(job.id),
        job.state,
        job.queue,
        job.task,
        str(begun(job)),
        relative(job.enqueued_at, now),
        about(job, now),
    ]


def begun(job: JobRecord) -> int:
    """Attempts begun since the enqueue or the last redrive; snoozes and interrupts begin none."""
    spent = job.counters.failed + job.counters.lost
    if job.started_at is None or job.state in WAITING:
        return spent
    # The last attempt of a dead job is counted among the failed or lost ones already.
    return max(1, spent) if job.state is State.dead else spent + 1


def about(job: JobRecord, now: datetime) -> str:
    """What a person asks next: why, since when, how far."""
    if job.error is not None:
        return printable(f"{job.error.type}: {job.error.message}")
    if job.reason:
        return printable(job.reason)
    if job.run_at is not None:
        return f"due {relative(job.run_at, now)}"
    if job.progress is not None:
        share = count(job.progress.done) + (
            "" if job.progress.of is None else f" of {count(job.progress.of)}"
        )
        return share + (f" {printable(job.progress.note)}" if job.progress.note else "")
    return "asked to stop" if job.cancel_wished else ""
