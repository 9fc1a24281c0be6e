"""`duly top`: the status, redrawn every second, with what runs at this moment."""

from __future__ import annotations

import sys
import time
from datetime import datetime
from typing import Final

import click
import msgspec

from duly.app import App
from duly.core.filters import Filter
from duly.core.job import JobRecord
from duly.core.lifecycle import State

from .jobs import begun
from .options import common, filters
from .output import Column, Json, Out, age, count, plain, printable
from .session import session_of
from .status import lines

_EVERY: Final = 1.0
_RUNNING: Final = 15
_CLEAR: Final = "\x1b[H\x1b[2J"

RUNNING = (
    Column("RUNNING", "right"),
    Column("QUEUE"),
    Column("TASK"),
    Column("ATTEMPTS", "right"),
    Column("FOR", "right"),
    Column("PROGRESS", wide=True),
)


@click.command()
@common
@filters
@click.pass_context
def top(context: click.Context, filter: Filter, everything: bool) -> None:
    """The status and the running jobs, live; Ctrl-C ends it.

    A filter chooses which running jobs are shown. Without a terminal, or for programs, it looks once.

    \b
      duly top
      duly top --queue mail
    """
    del everything
    session = session_of(context)
    app, out = session.data(), session.out
    live = out.for_people and sys.stdout.isatty()
    while True:
        if not out.for_people:
            out.answer(_document(app, filter), list)
            return
        frame = "\n".join(_frame(app, filter, out))
        click.echo((_CLEAR if live else "") + frame)
        if not live:
            return
        time.sleep(_EVERY)


def _running(app: App, filter: Filter) -> tuple[JobRecord, ...]:
    wanted = msgspec.structs.replace(filter, state=State.running, fingerprint=None)
    return app.inspect.jobs(wanted, limit=_RUNNING).jobs


def _document(app: App, filter: Filter) -> Json:
    return {"status": plain(app.inspect.status()), "running": plain(_running(app, filter))}


def _frame(app: App, filter: Filter, out: Out) -> list[str]:
    status = app.inspect.status()
    jobs = _running(app, filter)
    text = lines(status, out)
    if jobs:
        text += ["", *out.table(RUNNING, (_row(job, status.now) for job in jobs))]
    return text


def _row(job: JobRecord, now: datetime) -> list[str]:
    said = ""
    if job.progress is not None:
        said = count(job.progress.done) + ("" if job.progress.of is None else f"/{count(job.progress.of)}")
        said += f" {printable(job.progress.note)}" if job.progress.note else ""
    running = "-" if job.started_at is None else age(now - job.started_at)
    return [str(job.id), job.queue, job.task, str(begun(job)), running, said]
