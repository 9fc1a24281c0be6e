"""`duly runs`: how often jobs run, and why more than once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import click

from duly.client.run_reads import Runs
from duly.core.runs import TaskRuns

from .options import common, duration
from .output import Column, Json, Out, clock, count, plain, printable
from .session import session_of

COLUMNS: Final = (
    Column("TASK"),
    Column("COMPLETED", "right"),
    Column("RUNS EACH", "right"),
    Column("FAILED", "right"),
    Column("LOST", "right"),
    Column("TIMEOUT", "right"),
    Column("REDELIVERED", "right"),
    Column("REDRIVEN", "right"),
    Column("SUPPRESSED", "right"),
    Column("SECOND RUNS", wide=True),
)


@click.command(short_help="How often jobs run, and why again.")
@common
@click.option("--last", type=duration("--last"), metavar="DURATION", help="Over so long, at most 14d. [1h]")
@click.option("--queue", metavar="NAME", help="Only jobs of this queue.")
@click.pass_context
def runs(context: click.Context, last: timedelta | None, queue: str | None) -> None:
    """Attempts per completed job of each task, second runs by cause, and copies skipped instead of run.

    A second run is one that no handler asked for: its worker was lost, its time was over, a shutdown interrupted it,
    or a person ran it again. Retries after a failure stand under FAILED.

    \b
      duly runs
      duly runs --last 24h --queue mail
    """
    session = session_of(context)
    found = session.data().inspect.runs(timedelta(hours=1) if last is None else last, queue=queue)
    document: Json = {
        "since": plain(found.since),
        "until": plain(found.until),
        "tasks": [_item(found, one) for one in found.tasks],
        "all": _item(found, found.all),
    }
    session.out.answer(
        document, lambda: _lines(found, session.out), [_item(found, one) for one in found.tasks]
    )


def _lines(found: Runs, out: Out) -> Iterator[str]:
    if found.since is None or found.until is None:
        yield "nothing is counted yet: a worker counts what has ended, a minute or two behind"
        return
    if not found.tasks:
        yield f"nothing has ended since {clock(found.since)}"
        return
    rows = [*found.tasks, found.all] if len(found.tasks) > 1 else found.tasks
    yield from out.table(COLUMNS, [_row(found, one) for one in rows])
    if not out.quiet:
        yield f"from {clock(found.since)} to {clock(found.until, found.since)} UTC"


def _row(found: Runs, one: TaskRuns) -> list[str]:
    each = one.per_completed
    return [
        printable(one.task),
        count(one.completed),
        "-" if each is None else _ratio(each),
        count(one.failed),
        *(count(number) for number in one.by_cause.values()),
        count(one.suppressed),
        found.share(one.second, one),
    ]


def _ratio(each: float) -> str:
    """As many places as it takes to see that it is not 1."""
    return f"{each:.4f}".rstrip("0").rstrip(".") or "0"


def _item(found: Runs, one: TaskRuns) -> dict[str, Json]:
    return {
        "task": one.task,
        "completed": one.completed,
        "runs": one.runs,
        "runs_per_completed": one.per_completed,
        "failed": one.failed,
        **one.by_cause,
        "second_runs": one.second,
        "second_runs_text": found.share(one.second, one),
        "suppressed": one.suppressed,
        "suppressed_text": found.share(one.suppressed, one),
    }
