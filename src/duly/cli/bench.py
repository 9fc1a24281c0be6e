"""`duly bench`: how fast this database is, and what bounds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .options import common
from .output import Column, Json, plain, rate
from .session import session_of

if TYPE_CHECKING:
    from duly.bench.report import Report

COLUMNS = (
    Column("WHAT"),
    Column("DULY", "right"),
    Column("THE BARE LIMIT", "right"),
    Column("SHARE", "right"),
)


@click.command(short_help="Measure this database, and say what bounds it.")
@common
@click.option(
    "--seconds",
    type=click.IntRange(5, 600),
    default=60,
    show_default=True,
    metavar="N",
    help="About how long to measure.",
)
@click.pass_context
def bench(context: click.Context, seconds: int) -> None:
    """Measure the database of --url in about a minute, beside what it can do without any queue.

    Single and bulk enqueues, a drain by one worker process, and the time from an enqueue to the handler's first
    line; beside them round trips, bare commits and bare rows, over one connection. A sentence says what bounds them.

    All of it happens in a scratch schema of the same database (PostgreSQL), or in a file beside yours (SQLite), which
    is removed at the end. Your jobs are not touched, but they share disk and cores with it: run it when that is fine.

    \b
      duly bench
      duly bench --url postgresql://db/shop --seconds 20
    """
    from duly.bench.report import bounds, doubts
    from duly.bench.run import Plan, run

    session = session_of(context)
    report = run(session.data().settings, Plan.within(seconds), session.out.hint)
    document: Json = plain(report)
    if isinstance(document, dict):
        document["bounds"] = bounds(report)
        document["doubts"] = list(doubts(report))
    session.out.answer(document, lambda: lines(report, quiet=session.quiet))


def lines(report: Report, *, quiet: bool) -> list[str]:
    """The answer for people."""
    from duly.bench.report import bounds, doubts

    rows = list(_rows(report))
    text = ["", *_table(rows), "", bounds(report), *(f"But {doubt}." for doubt in doubts(report))]
    text += [click.style("warning:", fg="yellow", bold=True) + f" {warning}" for warning in report.warnings]
    return _table(rows, heading=False) if quiet else text


def _rows(report: Report) -> list[list[str]]:
    limits, latency, drain = report.limits, report.latency, report.drain
    return [
        [
            "enqueue, one job a call",
            f"{rate(report.single_per_s)} jobs/s",
            f"{rate(limits.commits_per_s)} commits/s ({limits.commit_ms:.2f} ms)",
            f"{report.single_per_s / limits.commits_per_s:.0%}",
        ],
        [
            "enqueue_many, 1,000 jobs a call",
            f"{rate(report.bulk_per_s)} jobs/s",
            f"{rate(limits.bulk_rows_per_s)} rows/s",
            f"{report.bulk_per_s / limits.bulk_rows_per_s:.0%}",
        ],
        [
            "drain, one worker process",
            f"{rate(drain.per_s)} jobs/s",
            f"{drain.worker_cpu:.0%} of a core in Python",
            f"{drain.per_s / limits.commits_per_s:.1f} jobs a commit",
        ],
        [
            "enqueue to start, worker idle",
            f"p50 {latency.p50_ms:.1f} ms, p99 {latency.p99_ms:.1f} ms",
            f"{limits.round_trips_per_s:,.0f} round trips/s ({limits.round_trip_ms:.2f} ms)",
            "",
        ],
    ]


def _table(rows: list[list[str]], *, heading: bool = True) -> list[str]:
    from .output import table

    return table(COLUMNS, rows, heading=heading)
