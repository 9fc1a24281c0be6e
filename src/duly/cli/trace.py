"""`duly trace`: everything that belongs to one request, in time order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from duly.client.trace_reads import Trace
from duly.core.job import JobId

from .options import common
from .output import Column, Out, clock, counted, plain, printable
from .session import session_of

COLUMNS: Final = (Column("AT"), Column("JOB"), Column("TASK"), Column("WHAT", wide=True))


@click.command(short_help="All jobs of one request, in time order.")
@common
@click.argument("id")
@click.pass_context
def trace(context: click.Context, id: str) -> None:
    """All that happened to the work of one correlation id: each job stands below the one that enqueued it.

    ID is a correlation id, as logs and `duly job` show it, or the number of any job of it.

    \b
      duly trace order-7
      duly trace 42
    """
    session = session_of(context)
    found = session.data().inspect.trace(id)
    session.out.answer(
        plain(found), lambda: _lines(found, session.out), (plain(moment) for moment in found.moments)
    )


def _lines(trace: Trace, out: Out) -> Iterator[str]:
    tasks = {traced.job.id: traced.job.task for traced in trace.jobs}
    yield from out.table(COLUMNS, (_row(trace, tasks, number) for number in range(len(trace.moments))))
    if out.quiet:
        return
    yield ""
    unfinished = f", {trace.unfinished:,} of them not ended" if trace.unfinished else ""
    yield f"{counted(len(trace.jobs), 'job')} of {printable(trace.correlation_id)}{unfinished}"
    if trace.more:
        yield f"there are more; the rest: duly jobs --correlation {printable(trace.correlation_id)}"


def _row(trace: Trace, tasks: dict[JobId, str], number: int) -> list[str]:
    moment = trace.moments[number]
    before = trace.moments[number - 1].at if number else None
    return [
        clock(moment.at, before),
        f"{'  ' * moment.depth}{moment.job}",
        printable(tasks[moment.job]),
        printable(moment.text),
    ]
